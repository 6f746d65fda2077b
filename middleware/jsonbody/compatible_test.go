package jsonbody_test

import (
	"encoding/json"
	"testing"
	"time"
)

// A type that no valid body fits into is a mistake of the program, which New can
// tell. Otherwise every client would be told that its valid body is not.
func TestNewRefusesTypesThatNoValueFits(t *testing.T) {
	type (
		integer struct{ A int }
		pointer struct{ A *int }
		text    struct{ A string }
		pair    struct{ A [2]int }
		colored struct{ A *color }
	)
	run(t, []rule{
		{"integer for a string", newRefuses[integer](stringA, "field A: type int cannot hold the values of the schema, which must be a string")},
		{"string for an integer", newRefuses[text](of(`{"type":["integer","boolean"]}`), "field A: type string cannot hold the values of the schema, which must be a boolean or an integer")},
		{"pointer", newRefuses[struct{ A *bool }](`{"properties":{"A":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"array"}}}`, "field A: type *bool cannot hold")},
		{"text", newRefuses[struct{ A time.Time }](integerA, "field A: type time.Time cannot hold the values of the schema, which must be an integer: its UnmarshalText gets only strings")},
		{"number", newRefuses[struct{ A json.Number }](of(`{"allOf":[{"type":"string"}]}`), "field A: type json.Number cannot hold")},
		{"items", newRefuses[struct{ A []float64 }](of(`{"type":"array","items":{"type":"string"}}`), "field A: type float64 cannot hold")},
		{"values", newRefuses[map[string]uint](`{"additionalProperties":{"type":"boolean"}}`, "type uint cannot hold")},
		{"struct", newRefuses[struct{}](`{"type":"array"}`, "type struct {} cannot hold")},
		{"both branches", newRefuses[integer](`{"oneOf":[{"properties":{"A":{"type":"string"}}},{"properties":{"A":{"type":"boolean"}}}]}`, "field A: type int cannot hold")},

		{"only null", newRefuses[integer](of(`{"type":"null"}`), "field A: type int cannot hold the values of the schema, which must be null")},
		{"only null, for a pointer", newRefuses[pointer](of(`{"type":"null"}`), "field A: type int cannot hold the values of the schema, which must be null")},
		{"null beside another type", newRefuses[integer](of(`{"type":["string","null"]}`), "which must be a string or null")},
		{"null fits, but nothing else", newRefuses[pointer](of(`{"oneOf":[{"type":"string"},{"type":"null"}]}`), "field A: type *int cannot hold the values of the schema, which must be a string or null")},
		{"every alternative", newRefuses[integer](`{"properties":{"A":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/b"}]}},"$defs":{"b":{"type":"array"}}}`, "which must be a string or an array")},
		{"alternatives that another keyword rules out", newRefuses[integer](of(`{"type":["string","boolean"],"anyOf":[{"type":"string"},{"type":"integer"}]}`), "which must be a string")},
		{"alternative that allows nothing", newRefuses[integer](of(`{"anyOf":[false,{"type":"string"}]}`), "which must be a string")},
		{"enumeration", newRefuses[integer](of(`{"enum":["a","b",null]}`), "which must be a string or null")},
		{"constant", newRefuses[text](of(`{"const":1}`), "which must be an integer")},
		{"constant that is no integer", newRefuses[integer](of(`{"const":1.5}`), "which must be a number that is not an integer")},
		{"enumeration of texts", newRefuses[colored](of(`{"enum":["rot","gelb",null]}`), `field A: type jsonbody_test.color cannot hold the values of the schema, which must be one of "rot", "gelb", null`)},
		{"constant out of range", newRefuses[struct{ A uint8 }](of(`{"const":256}`), "field A: type uint8 cannot hold the values of the schema, which must be 256")},
		{"minimum of items", newRefuses[pair](of(`{"allOf":[{"minItems":3}]}`), "field A: type [2]int cannot hold the values of the schema, which must have at least 3 items")},
		{"minimum", newRefuses[struct{ A uint8 }](of(`{"minimum":256}`), "field A: type uint8 cannot hold the values of the schema, which must be at least 256")},
		{"maximum", newRefuses[struct{ A uint }](of(`{"exclusiveMaximum":0}`), "field A: type uint cannot hold the values of the schema, which must be less than 0")},
		{"minimum by one", newRefuses[struct{ A int8 }](of(`{"exclusiveMinimum":127}`), "field A: type int8 cannot hold the values of the schema, which must be greater than 127")},
		{"pointers alone", newRefuses[self](`{"type":"string"}`, "type jsonbody_test.self points only to itself")},
		{"UnmarshalJSON", newRefuses[struct{ A optional }](of(`{"type":"object"}`), "field A: type jsonbody_test.optional cannot hold the values of the schema, which must be an object: its UnmarshalJSON gets no objects or arrays")},
		{"UnmarshalText", newRefuses[struct{ A color }](integerA, "field A: type jsonbody_test.color cannot hold the values of the schema, which must be an integer: its UnmarshalText gets only strings")},
	})
}

func TestNewTakesTypesThatSomeValuesFit(t *testing.T) {
	for name, newBody := range map[string]func() error{
		"no type":            newOf[struct{ A int }](anyA),
		"integer for number": newOf[struct{ A int }](numberA),
		"float for integer":  newOf[struct{ A float64 }](integerA),
		"one type of two":    newOf[struct{ A int }](of(`{"type":["string","integer"]}`)),
		"or null":            newOf[struct{ A *int }](of(`{"type":["integer","null"]}`)),
		"one or null":        newOf[struct{ A *Base }](of(`{"oneOf":[` + describe("ID") + `,{"type":"null"}]}`)),
		"one or null, as is": newOf[struct{ A string }](of(`{"type":["string","null"]}`)),
		"one branch":         newOf[struct{ A int }](`{"oneOf":[{"properties":{"A":{"type":"string"}}},{"properties":{"A":{"type":"integer"}}}]}`),
		"type in anyOf":      newOf[struct{ A int }](of(`{"anyOf":[{"type":"string"},{"minimum":3}]}`)),
		"type in if":         newOf[struct{ A int }](of(`{"if":{"type":"string"},"then":{"maxLength":3}}`)),
		"type in not":        newOf[struct{ A int }](of(`{"not":{"type":"string"}}`)),
		"text":               newOf[struct{ A time.Time }](stringA),
		"anything":           newOf[struct{ A any }](of(`{"type":"array"}`)),
		"items and prefix":   newOf[struct{ A []int }](of(`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`)),
		"map and member":     newOf[map[string]int](`{"properties":{"A":{"type":"string"}},"additionalProperties":{"type":"integer"}}`),
		"one text of two":    newOf[struct{ A color }](of(`{"enum":["rot","red"]}`)),
		"enumeration":        newOf[struct{ A int }](of(`{"enum":[1.0,"a"]}`)),
		"objects as a value": newOf[struct{ A Base }](of(`{"properties":{"ID":{}},"enum":[{"ID":1}]}`)),
		"bounds":             newOf[struct{ A uint8 }](of(`{"minimum":-1,"maximum":256}`)),
		"maximum of zero":    newOf[struct{ A uint }](of(`{"maximum":0}`)),
		"listed items":       newOf[even](`{"properties":{"Odd":{"properties":{"Even":{"items":{"$ref":"#"},"enum":[[{"Odd":{}}]]}}}}}`),
		"largest":            newOf[struct{ A uint64 }](of(`{"minimum":18446744073709551615}`)),
		"bounds of a float":  newOf[struct{ A float64 }](of(`{"minimum":1e300}`)),
		"bounds of strings":  newOf[struct{ A string }](of(`{"minimum":256}`)),
		"no value at all":    newOf[struct{ A int }](of(`false`)),
		"items enough":       newOf[struct{ A [2]int }](of(`{"minItems":2}`)),
		"recursive choice":   newOf[struct{ A int }](of(`{"anyOf":[{"type":"integer"},{"allOf":[{"anyOf":[{"type":"string"}]}]}]}`)),
	} {
		if err := newBody(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// of returns the schema of an object whose member A has a schema.
func of(schema string) string { return `{"properties":{"A":` + schema + `}}` }
