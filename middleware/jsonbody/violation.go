package jsonbody

import (
	"cmp"
	"encoding/json"
	"fmt"
	"math/big"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// problems converts a violation to problems. The texts of the validator are not used:
// they contain values of the body and the URL of the schema.
func (s *schema) problems(violation *jsonschema.ValidationError, tree any) []problem {
	c := collector{schema: s, tree: tree}
	c.collect(violation, false)
	// The validator walks maps, in a different order each time.
	slices.SortFunc(c.found, func(a, b problem) int {
		return cmp.Or(strings.Compare(a.pointer, b.pointer), strings.Compare(a.detail, b.detail))
	})
	return slices.Compact(c.found)
}

type collector struct {
	schema *schema
	tree   any
	found  []problem
}

// collect descends to the violations without further causes. With aboutName they are
// about the name of a member rather than its value.
func (c *collector) collect(v *jsonschema.ValidationError, aboutName bool) {
	js, keyword := c.schema.at(v.AbsoluteKeywordLocation)
	aboutName = aboutName || c.schema.nameSchemas[js]
	causes := v.Causes
	switch keyword {
	case "anyOf", "oneOf":
		causes = relevantCauses(v)
	case "minContains":
		causes = nil // why each item does not match
	}
	for _, cause := range causes {
		c.collect(cause, aboutName)
	}
	if len(causes) > 0 {
		return
	}
	pointer := unescapePath(v.InstanceLocation)
	switch name, rest, _ := strings.Cut(keyword, "/"); {
	case aboutName:
		c.add(pointer, "propertyNames", "has a name that is not allowed")
	case name == "required":
		c.addMissing(pointer, js.Required)
	case name == "additionalProperties":
		c.addUnknown(pointer, js)
	case name == "dependentRequired":
		member, _, _ := strings.Cut(rest, "/")
		c.addMissing(pointer, js.DependentRequired[unescapePointer(unescapePath(member))])
	default:
		c.add(pointer, name, requirement(js, keyword))
	}
}

func (c *collector) add(pointer, rule, detail string) {
	c.found = append(c.found, problem{pointer: pointer, rule: rule, detail: detail})
}

func (c *collector) addMissing(pointer string, names []string) {
	object, _ := lookup(c.tree, pointer).(map[string]any)
	for _, name := range names {
		if _, ok := object[name]; !ok {
			c.add(pointer+"/"+escapePointer(name), "required", "is required")
		}
	}
}

func (c *collector) addUnknown(pointer string, js *jsonschema.Schema) {
	object, _ := lookup(c.tree, pointer).(map[string]any)
	for name := range object {
		if len(memberSchemas(js, name)) == 0 {
			c.add(pointer+"/"+escapePointer(name), "additionalProperties", "is not allowed")
		}
	}
}

// relevantCauses returns the causes of a failed anyOf or oneOf that help the client: those
// of the alternative that accepts the type of the value, if there is exactly one.
func relevantCauses(v *jsonschema.ValidationError) []*jsonschema.ValidationError {
	var rest []*jsonschema.ValidationError
	for _, cause := range v.Causes {
		leaf := cause
		for len(leaf.Causes) == 1 {
			leaf = leaf.Causes[0]
		}
		wrongType := leaf.InstanceLocation == v.InstanceLocation &&
			strings.HasSuffix(leaf.KeywordLocation, "/type") && len(leaf.Causes) == 0
		if !wrongType {
			rest = append(rest, cause)
		}
	}
	if len(rest) != 1 {
		return nil
	}
	return rest
}

// at splits the location of a keyword into the schema and the keyword, which is ""
// if the schema itself is false.
func (s *schema) at(location string) (js *jsonschema.Schema, keyword string) {
	for end := len(location); end > 0; end = strings.LastIndexByte(location[:end], '/') {
		if js, ok := s.byLocation[location[:end]]; ok {
			keyword = strings.TrimPrefix(location[end:], "/")
			if keyword == "" && (js.Always == nil || *js.Always) {
				continue // not and contains name their own value
			}
			return js, keyword
		}
	}
	return s.root, ""
}

// unescapePath decodes a location of the validator, which is percent-encoded.
func unescapePath(location string) string {
	if s, err := url.PathUnescape(location); err == nil {
		return s
	}
	return location
}

// lookup returns the value at a pointer into the tree.
func lookup(v any, pointer string) any {
	for _, token := range strings.Split(pointer, "/")[1:] {
		switch parent := v.(type) {
		case map[string]any:
			v = parent[unescapePointer(token)]
		case []any:
			i, _ := strconv.Atoi(token) // never fails: the validator made the pointer
			v = parent[i]
		}
	}
	return v
}

// problem is one fault of a body.
type problem struct {
	pointer string // where: a JSON Pointer (RFC 6901); "" is the whole body
	detail  string // what: the rest of a sentence about that place
	rule    string // the keyword of the schema that it breaks; "" for a schema that is false, and for a fault of the text or of a Go type
	whole   bool   // the fault is of the text, not of a value in it
}

// within prefixes the pointer of p with a member or an element. It is called on the way
// out of nested values, so that only invalid values pay for their pointers.
func (p *problem) within(token string) *problem {
	if p.whole {
		return p
	}
	p.pointer = "/" + escapePointer(token) + p.pointer
	return p
}

var pointerEscaper = strings.NewReplacer("~", "~0", "/", "~1")

func escapePointer(token string) string { return pointerEscaper.Replace(token) }

var pointerUnescaper = strings.NewReplacer("~1", "/", "~0", "~")

func unescapePointer(token string) string { return pointerUnescaper.Replace(token) }

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
		return "must be " + allowed(js.Extensions["enum"].(enumeration).values)
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
