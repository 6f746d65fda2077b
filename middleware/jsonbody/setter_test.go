package jsonbody_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"math/big"
	"net/netip"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

// Names match exactly. What is not exported or excluded is left alone.
func TestValues(t *testing.T) {
	type (
		partial struct {
			A       string
			Skipped chan int `json:"-"`
			hidden  string   //nolint:unused // no JSON reaches it
		}
		tagged struct {
			B bool `json:"b"`
		}
	)
	run(t, []rule{
		{"string", reads(stringA, `{"A":"é\u0000"}`, struct{ A string }{"é\x00"})},
		{"integer with a fraction and an exponent", parses(integerA, `{"A":-1.20e1}`, struct{ A int }{-12})},
		{"least int8", reads(integerA, `{"A":-128}`, struct{ A int8 }{math.MinInt8})},
		{"largest uint16", parses(integerA, `{"A":65535.000}`, struct{ A uint16 }{math.MaxUint16})},
		{"largest uint64", reads(integerA, `{"A":18446744073709551615}`, struct{ A uint64 }{math.MaxUint64})},
		{"float64", reads(numberA, `{"A":0.1}`, struct{ A float64 }{0.1})},
		{"pointer", reads(integerA, `{"A":7}`, struct{ A *int }{ptr(7)})},
		{"nil", reads(anyA, `{"A":null}`, struct{ A *int }{})},
		{"slice", reads(anyA, `{"A":["a",""]}`, struct{ A []string }{[]string{"a", ""}})},
		{"empty slice", reads(anyA, `{"A":[]}`, struct{ A []string }{[]string{}})},
		{"map", reads(anyA, `{"A":{"a":1,"A":2}}`, struct{ A map[string]float64 }{map[string]float64{"a": 1, "A": 2}})},
		{"names in another case", parses(stringA, `{"A":"x","a":"y"}`, struct{ A string }{"x"})},
		{"names of no field", parses(stringA, `{"Skipped":1,"-":1,"hidden":"x"}`, partial{})},
		{"names that encoding/json takes for equal", parses(describe("b"), `{"B":true}`, tagged{})},
	})
}

// The schema asks nothing here: what the type cannot hold exactly is refused anyway.
func TestValuesThatTheTypeCannotHold(t *testing.T) {
	intRange := fmt.Sprintf("must be from %d to %d", math.MinInt, math.MaxInt) // 32 or 64 bits
	run(t, []rule{
		{"null for a struct", refuses[struct{ A int }](anyA, `null`, "", "must be an object")},
		{"array for a struct", refuses[struct{ A int }](anyA, `[]`, "", "must be an object")},
		{"null for a struct inside", refuses[struct{ A struct{} }](anyA, `{"A":null}`, "/A", "must be an object")},
		{"number for a boolean", refuses[struct{ A bool }](anyA, `{"A":0}`, "/A", "must be a boolean")},
		{"null for a string", refuses[struct{ A string }](anyA, `{"A":null}`, "/A", "must be a string")},
		{"null for an integer", refuses[struct{ A int }](anyA, `{"A":null}`, "/A", "must be an integer")},
		{"fraction", refuses[struct{ A int }](anyA, `{"A":1.5}`, "/A", "must be an integer")},
		{"too large for an int", refuses[struct{ A int }](anyA, `{"A":9223372036854775808}`, "/A", intRange)},
		{"too large for an int8", refuses[struct{ A int8 }](anyA, `{"A":128}`, "/A", "must be from -128 to 127")},
		{"less than 0", refuses[struct{ A uint16 }](anyA, `{"A":-1}`, "/A", "must be from 0 to 65535")},
		{"too large for a uint64", refuses[struct{ A uint64 }](anyA, `{"A":18446744073709551616}`, "/A", "must be from 0 to 18446744073709551615")},
		{"boolean for a float", refuses[struct{ A float64 }](anyA, `{"A":true}`, "/A", "must be a number")},
		{"too large for a float", refuses[struct{ A float64 }](anyA, `{"A":10e308}`, "/A", "is out of range")},
		{"string for a number", refuses[struct{ A json.Number }](anyA, `{"A":"1"}`, "/A", "must be a number")},
		{"no time", refuses[struct{ A time.Time }](anyA, `{"A":"yesterday"}`, "/A", "is not valid")},
		{"object for a slice", refuses[struct{ A []string }](anyA, `{"A":{}}`, "/A", "must be an array")},
		{"null in a slice", refuses[struct{ A []string }](anyA, `{"A":["a",null]}`, "/A/1", "must be a string")},
		{"array for a map", refuses[struct{ A map[string]int }](anyA, `{"A":[]}`, "/A", "must be an object")},
		{"string in a map", refuses[struct{ A map[string]float64 }](anyA, `{"A":{"a/b":"x"}}`, "/A/a~1b", "must be a number")},
	})
}

func TestParseKeepsNothingOfTheBody(t *testing.T) {
	data := []byte(dog)
	pet := testcheck.Must(newPetBody(t, jsonbody.Options{}).Parse(data))
	for i := range data {
		data[i] = 'x'
	}
	if pet.Name != "Rex" {
		t.Errorf("the name became %q when the bytes of the body did", pet.Name)
	}
}

func TestNewRefusesTypes(t *testing.T) {
	const schema = `{"properties":{"a":{},"A":{},"Next":{"$ref":"#"}}}`
	run(t, []rule{
		{"channel", newRefuses[struct{ A chan int }](schema, "field A: type chan int is not supported")},
		{"interface with methods", newRefuses[struct{ A error }](schema, "field A: type error is not supported")},
		{"map by integer", newRefuses[struct{ A map[int]string }](schema, "field A: type map[int]string is not supported")},
		{"member that the schema does not describe", newRefuses[struct {
			CategoryID int64 `json:"categoryID"`
		}](schema, `field CategoryID: the schema does not describe a member "categoryID"`)},
		{"member of a member", newRefuses[struct {
			A struct {
				B int `json:"b"`
			} `json:"a"`
		}](schema, `field A: field B: the schema does not describe a member "b"`)},
		{"member that the schema forbids", newRefuses[struct{ B int }](`{"properties":{"A":{}},"additionalProperties":false}`, `does not describe a member "B"`)},
		{"member that the schema forbids otherwise", newRefuses[struct{ B int }](`{"properties":{"A":{}},"unevaluatedProperties":false}`, `does not describe a member "B"`)},
		{"member that must not be", newRefuses[struct{ B int }](`{"not":{"properties":{"B":{}}}}`, `does not describe a member "B"`)},
	})
}

func newOf[T any](schema string) func() error {
	return func() error {
		_, err := jsonbody.New[T]([]byte(schema), "#", jsonbody.Options{})
		return err
	}
}

// A member may be described anywhere that applies to the object.
func TestDescribedMembers(t *testing.T) {
	type pet struct {
		Name string `json:"name"`
	}
	for _, schema := range []string{
		`{"$ref":"#/$defs/p","$defs":{"p":{"properties":{"name":{}}}}}`,
		`{"allOf":[{"anyOf":[{"properties":{"name":{}}}]}]}`,
		`{"oneOf":[{"type":"null"},{"properties":{"name":true}}]}`,
		`{"if":{"required":["x"]},"then":{"properties":{"name":{}}}}`,
		`{"if":{"required":["x"]},"else":{"properties":{"name":{}}}}`,
		`{"dependentSchemas":{"x":{"properties":{"name":{}}}}}`,
		`{"patternProperties":{"^na":{}}}`,
		`{"additionalProperties":{"type":"string"}}`,
		`{"unevaluatedProperties":{"type":"string"}}`,
	} {
		if err := newOf[pet](schema)(); err != nil {
			t.Errorf("schema %s: %v", schema, err)
		}
		if err := newOf[[]pet](`{"items":` + strings.ReplaceAll(schema, "#/", "#/items/") + `}`)(); err != nil {
			t.Errorf("items of schema %s: %v", schema, err)
		}
		if err := newOf[map[string]*pet](`{"additionalProperties":` + strings.ReplaceAll(schema, "#/", "#/additionalProperties/") + `}`)(); err != nil {
			t.Errorf("values of schema %s: %v", schema, err)
		}
	}
}

// A type that no valid body fits into is a mistake of the program, which New can
// tell. Otherwise every client would be told that its valid body is not.
func TestNewRefusesTypesThatNoValueFits(t *testing.T) {
	type (
		integer struct{ A int }
		pointer struct{ A *int }
	)
	run(t, []rule{
		{"integer for a string", newRefuses[integer](stringA, "field A: type int cannot hold the values of the schema, which must be a string")},
		{"string for an integer", newRefuses[struct{ A string }](of(`{"type":["integer","boolean"]}`), "field A: type string cannot hold the values of the schema, which must be a boolean or a number")},
		{"pointer", newRefuses[struct{ A *bool }](`{"properties":{"A":{"$ref":"#/$defs/a"}},"$defs":{"a":{"type":"array"}}}`, "field A: type bool cannot hold")},
		{"text", newRefuses[struct{ A time.Time }](integerA, "field A: type time.Time cannot hold the values of the schema, which must be a number")},
		{"number", newRefuses[struct{ A json.Number }](of(`{"allOf":[{"type":"string"}]}`), "field A: type json.Number cannot hold")},
		{"items", newRefuses[struct{ A []float64 }](of(`{"type":"array","items":{"type":"string"}}`), "field A: type float64 cannot hold")},
		{"values", newRefuses[map[string]uint](`{"additionalProperties":{"type":"boolean"}}`, "type uint cannot hold")},
		{"struct", newRefuses[struct{}](`{"type":"array"}`, "type struct {} cannot hold")},
		{"both branches", newRefuses[integer](`{"oneOf":[{"properties":{"A":{"type":"string"}}},{"properties":{"A":{"type":"boolean"}}}]}`, "field A: type int cannot hold")},

		{"only null", newRefuses[integer](of(`{"type":"null"}`), "field A: type int cannot hold the values of the schema, which must be null")},
		{"null fits, but nothing else", newRefuses[pointer](of(`{"oneOf":[{"type":"string"},{"type":"null"}]}`), "field A: type int cannot hold the values of the schema, which must be a string or null")},
		{"every alternative", newRefuses[integer](`{"properties":{"A":{"anyOf":[{"type":"string"},{"$ref":"#/$defs/b"}]}},"$defs":{"b":{"type":"array"}}}`, "which must be a string or an array")},
		{"alternatives that another keyword rules out", newRefuses[integer](of(`{"type":["string","boolean"],"anyOf":[{"type":"string"},{"type":"integer"}]}`), "which must be a string")},
		{"alternative that allows nothing", newRefuses[integer](of(`{"anyOf":[false,{"type":"string"}]}`), "which must be a string")},
		{"UnmarshalJSON", newRefuses[struct{ A optional }](of(`{"type":"object"}`), "field A: type jsonbody_test.optional cannot hold the values of the schema, which must be an object")},
		{"UnmarshalText", newRefuses[struct{ A color }](integerA, "field A: type jsonbody_test.color cannot hold")},
	})
}

func TestNewTakesTypesThatSomeValuesFit(t *testing.T) {
	for name, newBody := range map[string]func() error{
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
		"anything":           newOf[struct{ A any }](of(`{"type":"array"}`)),
		"items and prefix":   newOf[struct{ A []int }](of(`{"prefixItems":[{"type":"string"}],"items":{"type":"integer"}}`)),
		"map and member":     newOf[map[string]int](`{"properties":{"A":{"type":"string"}},"additionalProperties":{"type":"integer"}}`),
		"no value at all":    newOf[struct{ A int }](of(`false`)),
		"recursive choice":   newOf[struct{ A int }](of(`{"anyOf":[{"type":"integer"},{"allOf":[{"anyOf":[{"type":"string"}]}]}]}`)),
	} {
		if err := newBody(); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// of returns the schema of an object whose member A has a schema.
func of(schema string) string { return `{"properties":{"A":` + schema + `}}` }

// describe returns a schema that describes members of these names, and asks nothing.
func describe(names ...string) string {
	return `{"type":"object","properties":{"` + strings.Join(names, `":{},"`) + `":{}}}`
}

type (
	Base   struct{ ID int }
	Other  struct{ ID int }
	Deep   struct{ Base }
	Point  struct{ X, Y int }
	First  struct{ Point }
	Second struct{ First }
	Stamp  struct{ time.Time }
	Label  string
	lower  struct{ ID int }
	word   string //nolint:unused // only embedded
)

func TestEmbeddedStructs(t *testing.T) {
	id, both := describe("ID"), describe("ID", "A")
	type (
		plain struct {
			Base
			A string
		}
		pointer struct {
			*Base
			A string
		}
		named struct {
			Base `json:"base"`
		}
		shadow struct {
			ID string
			Base
		}
		shadowed struct {
			Base
			ID string
		}
		tie struct {
			Base
			Other
		}
		settled struct {
			Base
			Other
			ID string
		}
		skipped struct {
			Base `json:"-"`
			A    string
		}
		hidden struct{ lower }
		scalar struct{ Label }
		noted  struct{ word } //nolint:unused // encoding/json ignores it
	)
	run(t, []rule{
		{"fields", reads(both, `{"ID":1,"A":"x"}`, plain{Base{1}, "x"})},
		{"fields two levels down", reads(id, `{"ID":1}`, struct{ Deep }{Deep{Base{1}}})},
		{"two fields three levels down", reads(describe("X", "Y"), `{"X":1,"Y":2}`, Second{First{Point{1, 2}}})},
		{"pointer", newRefuses[pointer](both, "field Base: an embedded pointer is not supported")},
		{"with a name", reads(`{"properties":{"base":`+id+`}}`, `{"base":{"ID":1}}`, named{Base{1}})},
		{"not exported, with a name", newRefuses[struct {
			lower `json:"lower"`
		}](`{"properties":{"lower":`+id+`}}`, "field lower: an embedded struct that is not exported must have no name in its tag")},
		{"not exported", reads(id, `{"ID":1}`, hidden{lower{1}})},
		{"less nested field first", reads(id, `{"ID":"x"}`, shadow{"x", Base{}})},
		{"less nested field last", reads(id, `{"ID":"x"}`, shadowed{Base{}, "x"})},
		{"two of a name", newRefuses[tie](id, `field Other.ID: is the second field for the member "ID"`)},
		{"two of a name below a third", reads(id, `{"ID":"x"}`, settled{ID: "x"})},
		{"excluded", reads(describe("A"), `{"A":"x","ID":1}`, skipped{A: "x"})},
		{"no struct", reads(describe("Label"), `{"Label":"x"}`, scalar{"x"})},
		{"no struct and not exported", reads(describe("x"), `{"word":"x"}`, noted{})},
		{"member that the schema does not describe", newRefuses[plain](describe("A"), `field Base.ID: the schema does not describe a member "ID"`)},
		{"wrong value", refuses[plain](both, `{"ID":"1"}`, "/ID", "must be an integer")},
		{"type that reads text", newRefuses[struct {
			netip.Addr
			A string
		}](both, "which must be an object")},
		{"type that reads JSON", newRefuses[struct {
			time.Time
			A string
		}](both, "which must be an object")},
		{"type that reads JSON, for strings", reads(stringA, `{"A":"2026-11-22T00:00:00Z"}`, struct{ A Stamp }{Stamp{time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)}})},
	})
}

func TestTags(t *testing.T) {
	run(t, []rule{
		{"name of one minus sign", reads(describe("-"), `{"-":1}`, struct {
			A int `json:"-,"`
		}{1})},
		{"no name", reads(describe("A"), `{"A":1}`, struct {
			A int `json:",omitempty"`
		}{1})},
		{"any name", reads(describe("ä-1/$ "), `{"ä-1/$ ":1}`, struct {
			A int `json:"ä-1/$ "`
		}{1})},
		{"name of another field", newRefuses[struct {
			A string
			B int `json:"A"`
		}](describe("A"), `field B: is the second field for the member "A"`)},
		{"option string", newRefuses[struct {
			A int `json:"a,omitempty,string"`
		}](describe("a"), "field A: the tag option string is not supported")},
	})
}

func TestReadersOfTheirOwn(t *testing.T) {
	type (
		colored struct{ A color }
		option  struct{ A optional }
		any1    struct{ A any }
	)
	run(t, []rule{
		{"time", reads(stringA, `{"A":"2026-11-22T00:00:00Z"}`, struct{ A time.Time }{time.Date(2026, 11, 22, 0, 0, 0, 0, time.UTC)})},
		{"text", reads(stringA, `{"A":"red"}`, colored{1})},
		{"text refused", refuses[colored](stringA, `{"A":"rot"}`, "/A", "is not valid")},
		{"number for text", refuses[colored](anyA, `{"A":1}`, "/A", "must be a string")},
		{"texts by pointer", reads(anyA, `{"A":["red",null]}`, struct{ A []*color }{[]*color{ptr(color(1)), nil}})},

		{"JSON", reads(integerA, `{"A":7}`, option{optional{true, "7"}})},
		{"JSON of a string", reads(stringA, `{"A":"é\n"}`, option{optional{true, `"é\n"`}})},
		{"JSON null", reads(anyA, `{"A":null}`, option{optional{true, "null"}})},
		{"JSON absent", reads(anyA, `{}`, option{})},
		{"JSON by pointer", reads(anyA, `{"A":null}`, struct{ A *optional }{})},
		{"JSON refused", refuses[option](anyA, `{"A":false}`, "/A", "is not valid")},
		{"JSON of an object", refuses[option](anyA, `{"A":{}}`, "/A", "must not be an object or an array")},
		{"JSON of an array", refuses[option](anyA, `{"A":[]}`, "/A", "must not be an object or an array")},
		{"raw JSON", newRefuses[struct{ A json.RawMessage }](anyA, "field A: type json.RawMessage is not supported")},

		{"any", reads(anyA, `{"A":[18446744073709551616,{"b":null}]}`, any1{[]any{json.Number("18446744073709551616"), map[string]any{"b": nil}}})},
		{"interface of its own", reads(anyA, `{"A":"x"}`, struct{ A interface{} }{"x"})},
	})
}

type (
	color int
	// optional tells null and absent apart.
	optional struct {
		Set  bool
		JSON string
	}
)

func (c *color) UnmarshalText(text []byte) error {
	if string(text) != "red" {
		return errors.New("unknown color " + string(text))
	}
	*c = 1
	return nil
}

func (o *optional) UnmarshalJSON(data []byte) error {
	if string(data) == "false" {
		return errors.New("no")
	}
	*o = optional{true, string(data)}
	return nil
}

type (
	Node struct {
		Value int
		Next  *Node
		Kids  []Node
		Named map[string]Node
	}
	even struct{ Odd *odd }
	odd  struct{ Even []even }
	list []list
	tree map[string]tree
)

func TestRecursiveTypes(t *testing.T) {
	const (
		node = `{"type":"object","properties":{
			"Value":{"type":"integer"}, "Next":{"$ref":"#"}, "Kids":{"items":{"$ref":"#"}}, "Named":{"additionalProperties":{"$ref":"#"}}
		}}`
		twice = `{"properties":{"Odd":{"properties":{"Even":{"items":{"$ref":"#"}}}}}}`
	)
	run(t, []rule{
		{"pointer", reads(node, `{"Next":{"Value":1,"Next":{"Value":2}}}`, Node{Next: &Node{Value: 1, Next: &Node{Value: 2}}})},
		{"slice", reads(node, `{"Kids":[{"Kids":[{"Value":1}]},{"Kids":[]}]}`, Node{Kids: []Node{{Kids: []Node{{Value: 1}}}, {Kids: []Node{}}}})},
		{"map", reads(node, `{"Named":{"a":{"Named":{"b":{"Value":1}}}}}`, Node{Named: map[string]Node{"a": {Named: map[string]Node{"b": {Value: 1}}}}})},
		{"two types", reads(twice, `{"Odd":{"Even":[{"Odd":{"Even":null}}]}}`, even{&odd{[]even{{&odd{}}}}})},
		{"wrong value inside", refuses[Node](node, `{"Kids":[{"Next":{"Named":{"a":{"Value":1.5}}}}]}`, "/Kids/0/Next/Named/a/Value", "must be an integer")},
		{"schema that ends", newRefuses[even](`{"properties":{"Odd":{"properties":{"Even":{"items":{}}}}}}`, `field Odd: field Even: field Odd: the schema does not describe a member "Odd"`)},
		{"schema with other values inside", newRefuses[Node](`{"properties":{"Value":{},"Kids":{},"Named":{},"Next":{"properties":{
			"Value":{"type":"string"},"Next":{},"Kids":{},"Named":{}}}}}`, "field Next: field Value: type int cannot hold")},
		{"slices alone", reads(`{"items":{"$ref":"#"}}`, `[[],[[]],null]`, list{{}, {{}}, nil})},
		{"maps alone", reads(`{}`, `{"a":{"b":{}},"c":null}`, tree{"a": {"b": {}}, "c": nil})},
	})
}

const (
	integerA = `{"properties":{"A":{"type":"integer"}}}`
	numberA  = `{"properties":{"A":{"type":"number"}}}`
	stringA  = `{"properties":{"A":{"type":"string"}}}`
	anyA     = `{"properties":{"A":{}}}`
	arrayA   = `{"properties":{"A":{"type":"array","items":{"type":"integer"}}}}`
)

func TestNumbers(t *testing.T) {
	type (
		single struct{ A float32 }
		bigInt struct{ A big.Int }
	)
	run(t, []rule{
		{"uint64 above 2^53", reads(integerA, `{"A":9007199254740993}`, struct{ A uint64 }{1<<53 + 1})},
		{"int64 below -2^53", reads(integerA, `{"A":-9007199254740993}`, struct{ A int64 }{-1<<53 - 1})},
		{"number as sent", reads(numberA, `{"A":1.10E+2}`, struct{ A json.Number }{"1.10E+2"})},
		{"number of a type of its own", newRefuses[struct{ A number }](numberA, "field A: type jsonbody_test.number cannot hold")},

		{"float32", reads(numberA, `{"A":0.1}`, single{0.1})},
		{"largest float32", reads(numberA, `{"A":3.4028234663852886e38}`, single{math.MaxFloat32})},
		{"float32 overflow", refuses[single](numberA, `{"A":3.5e38}`, "/A", "is out of range")},
		{"float32 underflow", reads(numberA, `{"A":1e-50}`, single{})},
		{"float32 for a string", newRefuses[single](stringA, "field A: type float32 cannot hold")},

		{"big.Int", reads(integerA, `{"A":18446744073709551616}`, bigInt{*new(big.Int).Lsh(big.NewInt(1), 64)})},
		{"exponent for big.Int", parses(integerA, `{"A":-1e2}`, bigInt{*big.NewInt(-100)})},
		{"null for big.Int", refuses[bigInt](`{"properties":{"A":{"type":["integer","null"]}}}`, `{"A":null}`, "/A", "must be an integer")},
		{"nil for a pointer to big.Int", reads(anyA, `{"A":null}`, struct{ A *big.Int }{})},
		{"fraction for big.Int", refuses[bigInt](numberA, `{"A":1.5}`, "/A", "must be an integer")},
		{"big.Float, as encoding/json writes it", reads(stringA, `{"A":"0.5"}`, struct{ A *big.Float }{new(big.Float).SetPrec(64).SetFloat64(0.5)})},
		{"big.Rat, of which short texts take long", newRefuses[struct{ A *big.Rat }](stringA, "field A: type big.Rat is not supported")},
	})
}

func TestBytesAndArrays(t *testing.T) {
	type (
		bytes  struct{ A []byte }
		named  struct{ A octets }
		pair   struct{ A [2]int }
		digest struct{ A [4]byte }
	)
	run(t, []rule{
		{"bytes", reads(stringA, `{"A":"AP+/"}`, bytes{[]byte{0, 0xff, 0xbf}})},
		{"no bytes", reads(stringA, `{"A":""}`, bytes{[]byte{}})},
		{"nil bytes", reads(anyA, `{"A":null}`, bytes{})},
		{"bytes of a type of its own", reads(stringA, `{"A":"YQ=="}`, named{octets("a")})},
		{"bytes from an array", reads(arrayA, `{"A":[0,255]}`, bytes{[]byte{0, 255}})},
		{"no byte", refuses[bytes](arrayA, `{"A":[0,256]}`, "/A/1", "must be from 0 to 255")},
		{"no base64", refuses[bytes](stringA, `{"A":"a"}`, "/A", "must be a base64 string")},
		{"base64 without padding", refuses[bytes](stringA, `{"A":"YQ"}`, "/A", "must be a base64 string")},
		{"base64 for URLs", refuses[bytes](stringA, `{"A":"AP-_"}`, "/A", "must be a base64 string")},
		{"base64 with bits that are lost", refuses[bytes](stringA, `{"A":"YR=="}`, "/A", "must be a base64 string")},
		{"base64 in lines", refuses[bytes](stringA, `{"A":"YWFh\nYWFh"}`, "/A", "must be a base64 string")},
		{"number for bytes", refuses[bytes](anyA, `{"A":1}`, "/A", "must be a base64 string")},
		{"schema of numbers for bytes", newRefuses[bytes](integerA, "field A: type []uint8 cannot hold")},

		{"array", reads(arrayA, `{"A":[1,2]}`, pair{[2]int{1, 2}})},
		{"array with fewer elements", reads(arrayA, `{"A":[1]}`, pair{[2]int{1, 0}})},
		{"array with more elements", refuses[pair](arrayA, `{"A":[1,2,3]}`, "/A", "must have at most 2 items")},
		{"array of one with two", refuses[struct{ A [1]int }](arrayA, `{"A":[1,2]}`, "/A", "must have at most 1 item")},
		{"null for an array", refuses[pair](anyA, `{"A":null}`, "/A", "must be an array")},
		{"wrong element of an array", refuses[pair](anyA, `{"A":[1,"2"]}`, "/A/1", "must be an integer")},
		{"array of bytes", reads(arrayA, `{"A":[1,2,3,255]}`, digest{[4]byte{1, 2, 3, 255}})},
		{"schema of strings for an array of bytes", newRefuses[digest](stringA, "field A: type [4]uint8 cannot hold")},
		{"schema with other items", newRefuses[pair](`{"properties":{"A":{"items":{"type":"string"}}}}`, "field A: type int cannot hold")},
	})
}

type (
	number json.Number
	octets []byte
)

// rule is one row of a table of Go types, schemas and bodies.
type rule struct {
	name  string
	check func(*testing.T)
}

func run(t *testing.T, rules []rule) {
	for _, r := range rules {
		t.Run(r.name, r.check)
	}
}

// parses expects that the text is read as want.
func parses[T any](schema, text string, want T) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		got, err := bodyOf[T](t, schema, jsonbody.Options{}).Parse([]byte(text))
		if err != nil {
			t.Fatalf("Parse of %s: %v", text, err)
		}
		if diff := cmp.Diff(want, got, asJSON); diff != "" {
			t.Errorf("Parse of %s (-want +got):\n%s", text, diff)
		}
	}
}

// asJSON compares integers by value, and fields that are not exported.
var asJSON = cmp.Options{
	cmp.Comparer(func(a, b big.Int) bool { return a.Cmp(&b) == 0 }),
	cmp.Exporter(func(reflect.Type) bool { return true }),
}

// reads expects that the text is read as want, by encoding/json too.
func reads[T any](schema, text string, want T) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		parses(schema, text, want)(t)
		var standard T
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&standard); err != nil {
			t.Fatalf("encoding/json: %v", err)
		}
		if diff := cmp.Diff(want, standard, asJSON); diff != "" {
			t.Errorf("encoding/json reads %s otherwise (-want +got):\n%s", text, diff)
		}
	}
}

// refuses expects that New takes the type, and that Parse refuses the text.
func refuses[T any](schema, text, pointer, detail string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		_, err := bodyOf[T](t, schema, jsonbody.Options{}).Parse([]byte(text))
		if diff := cmp.Diff(details(pointer, detail), refusal(t, err).Details, anyRule); diff != "" {
			t.Errorf("details for %s (-want +got):\n%s", text, diff)
		}
	}
}

// newRefuses expects that New refuses the type with a text.
func newRefuses[T any](schema, want string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		if err := newOf[T](schema)(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("New: got error %v, want one about %q", err, want)
		}
	}
}

func ptr[T any](v T) *T { return &v }
