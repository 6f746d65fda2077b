package jsonbody

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v5"
)

// kinds is a set of the types of JSON values. Integers are numbers of their own.
type kinds uint8

const (
	nulls kinds = 1 << iota
	booleans
	integers
	fractions // numbers that are not integers
	texts
	arrays
	objects

	numbers  = integers | fractions
	scalars  = nulls | booleans | numbers | texts
	anything = scalars | arrays | objects
)

var kindsByName = map[string]kinds{
	"null": nulls, "boolean": booleans, "integer": integers, "number": numbers,
	"string": texts, "array": arrays, "object": objects,
}

// String returns the phrase for k after "must be".
func (k kinds) String() string {
	number := ""
	switch k & numbers {
	case numbers:
		number = "a number"
	case integers:
		number = "an integer"
	case fractions:
		number = "a number that is not an integer"
	}
	var names []string
	for _, part := range []struct {
		kinds
		name string
	}{
		{booleans, "a boolean"}, {numbers, number}, {texts, "a string"},
		{arrays, "an array"}, {objects, "an object"}, {nulls, "null"},
	} {
		if k&part.kinds != 0 {
			names = append(names, part.name)
		}
	}
	return strings.Join(names, " or ")
}

// heldBy returns the kinds of values that t can hold some of. Unsupported types are
// refused elsewhere.
func heldBy(t reflect.Type) kinds {
	switch {
	case t == numberType:
		return numbers
	case t == bigIntType:
		return integers
	case t == timeType:
		return texts
	case reflect.PointerTo(t).Implements(jsonType):
		return scalars
	case reflect.PointerTo(t).Implements(textType):
		return texts
	}
	switch t.Kind() {
	case reflect.Pointer:
		return heldBy(t.Elem()) | nulls
	case reflect.Bool:
		return booleans
	case reflect.String:
		return texts
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return integers
	case reflect.Float32, reflect.Float64:
		return numbers
	case reflect.Slice:
		if t.Elem().Kind() == reflect.Uint8 {
			return arrays | texts | nulls
		}
		return arrays | nulls
	case reflect.Array:
		return arrays
	case reflect.Map:
		return objects | nulls
	case reflect.Struct:
		return objects
	}
	return anything
}

// allowedBy returns the kinds of values that js may allow: it looks at the keywords that
// name types or values, in js and in what js requires of the same value. The compiler
// has refused schemas that would not end here.
func allowedBy(js *jsonschema.Schema) kinds {
	k := anything
	if js.Always != nil && !*js.Always {
		k = 0
	}
	if len(js.Types) > 0 {
		var named kinds
		for _, name := range js.Types {
			named |= kindsByName[name]
		}
		k &= named
	}
	for _, values := range [][]any{js.Constant, enumOf(js)} {
		var listed kinds
		for _, v := range values {
			listed |= kindOf(v)
		}
		if len(values) > 0 {
			k &= listed
		}
	}
	if js.Ref != nil {
		k &= allowedBy(js.Ref)
	}
	for _, sub := range js.AllOf {
		k &= allowedBy(sub)
	}
	for _, alternatives := range [][]*jsonschema.Schema{js.AnyOf, js.OneOf} {
		if len(alternatives) > 0 {
			k &= allowedByAny(alternatives)
		}
	}
	return k
}

// allowedByAny returns the kinds of values that one of schemas may allow.
func allowedByAny(schemas []*jsonschema.Schema) (k kinds) {
	for _, js := range schemas {
		k |= allowedBy(js)
	}
	return k
}

// kindOf returns the kind of a value.
func kindOf(v any) kinds {
	switch v := v.(type) {
	case nil:
		return nulls
	case bool:
		return booleans
	case json.Number:
		if newDecimal(v.String()).exponent < 0 {
			return fractions
		}
		return integers
	case string:
		return texts
	case []any:
		return arrays
	}
	return objects
}

// Limits of a number token, which RFC 8259 section 6 allows. The validator converts
// every number to a fraction of big integers that are as long as the exponent is large:
// 1e1000000 takes tens of milliseconds. An IEEE 754 double needs no larger exponent, and
// an integer of 256 bits 78 digits.
const (
	maxNumber   = 100 // bytes
	maxExponent = 308 // and not below -308
)

// checkNumber returns what is wrong with a token of the grammar, or "".
func checkNumber(token []byte) string {
	if len(token) > maxNumber {
		return "is a number of more than " + strconv.Itoa(maxNumber) + " characters"
	}
	if i := bytes.IndexAny(token, "eE"); i >= 0 {
		digits := bytes.TrimLeft(token[i+1:], "+-")
		if n, err := strconv.Atoi(string(digits)); err != nil || n > maxExponent {
			return "is a number with an exponent beyond " + strconv.Itoa(maxExponent)
		}
	}
	return ""
}

// decimal is the exact value of a number token: digits times ten to the power of
// exponent. Equal numbers have equal decimals: digits neither begin nor end with
// a zero, and zero has none, no exponent and no sign.
type decimal struct {
	negative bool
	digits   string
	exponent int
}

// newDecimal takes a token that has passed checkNumber.
func newDecimal(token string) decimal {
	var d decimal
	token, d.negative = strings.CutPrefix(token, "-")
	if i := strings.IndexAny(token, "eE"); i >= 0 {
		d.exponent, _ = strconv.Atoi(token[i+1:])
		token = token[:i]
	}
	whole, fraction, _ := strings.Cut(token, ".")
	digits := strings.TrimLeft(whole+fraction, "0")
	d.digits = strings.TrimRight(digits, "0")
	if d.digits == "" {
		return decimal{}
	}
	d.exponent += len(digits) - len(d.digits) - len(fraction)
	return d
}

// integer returns the digits of d, with an exponent that is not negative, as
// strconv.ParseInt reads them. There are at most a few hundred.
func (d decimal) integer() string {
	s := d.digits + strings.Repeat("0", d.exponent)
	if s == "" {
		s = "0"
	}
	if d.negative {
		s = "-" + s
	}
	return s
}
