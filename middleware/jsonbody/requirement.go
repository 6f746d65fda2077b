package jsonbody

import (
	"encoding/json"
	"fmt"
	"math/big"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// maxAllowed is the largest number of allowed values in a text.
const maxAllowed = 20

// requirement says what a keyword of a schema requires of a value, as the rest of a
// sentence about the value. It contains nothing of the body; the schema is public.
func requirement(js *jsonschema.Schema, keyword string) string {
	switch keyword {
	case "":
		return "is not allowed"
	case "type":
		return "must be " + typeNames(js.Types)
	case "const":
		return "must be " + literal(js.Constant[0])
	case "enum":
		return "must be " + allowed(enumOf(js))
	case "minLength":
		return "must have at least " + count(js.MinLength, "character")
	case "maxLength":
		return "must have at most " + count(js.MaxLength, "character")
	case "pattern":
		if js.Title != "" {
			return "must be " + js.Title
		}
		return "must match the pattern " + js.Pattern.String()
	case "minimum":
		return "must be at least " + rational(js.Minimum)
	case "exclusiveMinimum":
		return "must be greater than " + rational(js.ExclusiveMinimum)
	case "maximum":
		return "must be at most " + rational(js.Maximum)
	case "exclusiveMaximum":
		return "must be less than " + rational(js.ExclusiveMaximum)
	case "multipleOf":
		return "must be a multiple of " + rational(js.MultipleOf)
	case "minItems":
		return "must have at least " + count(js.MinItems, "item")
	case "maxItems":
		return "must have at most " + count(js.MaxItems, "item")
	case "uniqueItems":
		return "must not have duplicate items"
	case "minContains":
		return "must have at least " + count(js.MinContains, "item") + " of the required form"
	case "maxContains":
		return "must have at most " + count(js.MaxContains, "item") + " of the required form"
	case "minProperties":
		return "must have at least " + count(js.MinProperties, "member")
	case "maxProperties":
		return "must have at most " + count(js.MaxProperties, "member")
	case "not":
		return "has a form that is not allowed"
	case "oneOf":
		return "must have exactly one of the allowed forms"
	default: // anyOf
		return "must have one of the allowed forms"
	}
}

var typePhrases = map[string]string{
	"null": "null", "boolean": "a boolean", "number": "a number", "integer": "an integer",
	"string": "a string", "array": "an array", "object": "an object",
}

func typeNames(types []string) string {
	names := make([]string, len(types))
	for i, t := range types {
		names[i] = typePhrases[t]
	}
	return strings.Join(names, " or ")
}

func allowed(values []any) string {
	if len(values) == 1 {
		return literal(values[0])
	}
	if len(values) > maxAllowed {
		return "one of the allowed values"
	}
	texts := make([]string, len(values))
	for i, v := range values {
		texts[i] = literal(v)
	}
	return "one of " + strings.Join(texts, ", ")
}

// literal writes a value of the schema as JSON.
func literal(v any) string {
	b, _ := json.Marshal(v) // never fails: the value was read from JSON
	return string(b)
}

func count(n int, of string) string {
	if n == 1 {
		return "1 " + of
	}
	return fmt.Sprintf("%d %ss", n, of)
}

func rational(r *big.Rat) string {
	if r.IsInt() {
		return r.Num().String()
	}
	f, _ := r.Float64()
	return strconv.FormatFloat(f, 'g', -1, 64)
}
