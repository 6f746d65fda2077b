package jsonbody_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

// everything has a field of each type that can be set.
type everything struct {
	Bool    bool               `json:"bool"`
	String  string             `json:"string"`
	Int     int                `json:"int"`
	Int8    int8               `json:"int8"`
	Uint16  uint16             `json:"uint16"`
	Uint64  uint64             `json:"uint64"`
	Float   float64            `json:"float"`
	Number  json.Number        `json:"number"`
	Time    time.Time          `json:"time"`
	Any     any                `json:"any"`
	Pointer *int               `json:"pointer"`
	Slice   []string           `json:"slice"`
	Map     map[string]float64 `json:"map"`
	Struct  struct {
		A int `json:"a,omitempty"`
	} `json:"struct"`
	Structs []struct {
		B *struct{ C string } `json:"b"`
	} `json:"structs"`
	Untagged string
	Skipped  chan int `json:"-"`
	hidden   string
}

// openSchema describes the members of everything, and asks nothing of them.
const openSchema = `{"properties": {
	"bool": {}, "string": {}, "int": {}, "int8": {}, "uint16": {}, "uint64": {}, "float": {}, "number": {},
	"time": {}, "any": {}, "pointer": {}, "slice": {}, "map": {}, "struct": {"properties": {"a": true}},
	"structs": {"items": {"properties": {"b": {"$ref": "#/$defs/b"}}}}, "Untagged": {}
}, "$defs": {"b": {"allOf": [{"properties": {"C": {}}}]}}}`

func TestSetters(t *testing.T) {
	body := bodyOf[everything](t, openSchema, jsonbody.Options{})
	seven := 7
	for _, tt := range []struct {
		text string
		want func(*everything)
	}{
		{`{}`, func(*everything) {}},
		{`{"string":"é\u0000"}`, func(e *everything) { e.String = "é\x00" }},
		{`{"int":-1.20e1}`, func(e *everything) { e.Int = -12 }},
		{`{"int8":-128}`, func(e *everything) { e.Int8 = math.MinInt8 }},
		{`{"uint16":65535.000}`, func(e *everything) { e.Uint16 = math.MaxUint16 }},
		{`{"uint64":18446744073709551615}`, func(e *everything) { e.Uint64 = math.MaxUint64 }},
		{`{"float":0.1}`, func(e *everything) { e.Float = 0.1 }},
		{`{"number":1.10E+2}`, func(e *everything) { e.Number = "1.10E+2" }},
		{`{"time":"2030-12-05T00:00:00Z"}`, func(e *everything) { e.Time = time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC) }},
		{`{"any":[1,{"a":null}]}`, func(e *everything) { e.Any = []any{json.Number("1"), map[string]any{"a": nil}} }},
		{`{"pointer":7}`, func(e *everything) { e.Pointer = &seven }},
		{`{"pointer":null}`, func(e *everything) {}},
		{`{"slice":["a",""]}`, func(e *everything) { e.Slice = []string{"a", ""} }},
		{`{"slice":[]}`, func(e *everything) { e.Slice = []string{} }},
		{`{"map":{"a":1,"A":2}}`, func(e *everything) { e.Map = map[string]float64{"a": 1, "A": 2} }},
		{`{"struct":{"a":1,"A":2}}`, func(e *everything) { e.Struct.A = 1 }},
		{`{"structs":[{},{"b":null},{"b":{"C":"x"}}]}`, func(e *everything) {
			e.Structs = []struct {
				B *struct{ C string } `json:"b"`
			}{{}, {}, {B: &struct{ C string }{"x"}}}
		}},
		{`{"Untagged":"x","untagged":"y"}`, func(e *everything) { e.Untagged = "x" }},
		{`{"Skipped":1,"-":1,"hidden":"x","BOOL":true,"\u017ftring":"x"}`, func(*everything) {}},
	} {
		t.Run(tt.text, func(t *testing.T) {
			var want everything
			tt.want(&want)
			got, err := body.Parse([]byte(tt.text))
			if err != nil {
				t.Fatalf("Parse: %v", err)
			}
			if diff := cmp.Diff(want, got, cmpopts.IgnoreUnexported(everything{})); diff != "" {
				t.Errorf("Parse (-want +got):\n%s", diff)
			}
			if got.hidden != "" {
				t.Errorf("the field that is not exported became %q", got.hidden)
			}
		})
	}
}

// intRange is that of int, which has 32 or 64 bits.
var intRange = fmt.Sprintf("must be from %d to %d", math.MinInt, math.MaxInt)

// The schema asks nothing here: what the type cannot hold exactly is refused anyway.
func TestSettersRefuseWhatTheTypeCannotHold(t *testing.T) {
	body := bodyOf[everything](t, openSchema, jsonbody.Options{})
	for _, tt := range []struct{ text, pointer, detail string }{
		{`null`, "", "must be an object"},
		{`[]`, "", "must be an object"},
		{`{"bool":0}`, "/bool", "must be a boolean"},
		{`{"string":null}`, "/string", "must be a string"},
		{`{"int":null}`, "/int", "must be an integer"},
		{`{"int":1.5}`, "/int", "must be an integer"},
		{`{"int":9223372036854775808}`, "/int", intRange},
		{`{"int8":128}`, "/int8", "must be from -128 to 127"},
		{`{"uint16":-1}`, "/uint16", "must be from 0 to 65535"},
		{`{"uint64":18446744073709551616}`, "/uint64", "must be from 0 to 18446744073709551615"},
		{`{"float":true}`, "/float", "must be a number"},
		{`{"float":10e308}`, "/float", "is out of range"},
		{`{"number":"1"}`, "/number", "must be a number"},
		{`{"time":"yesterday"}`, "/time", "is not valid"},
		{`{"time":1}`, "/time", "must be a string"},
		{`{"slice":{}}`, "/slice", "must be an array"},
		{`{"slice":["a",null]}`, "/slice/1", "must be a string"},
		{`{"map":[]}`, "/map", "must be an object"},
		{`{"map":{"a/b":"x"}}`, "/map/a~1b", "must be a number"},
		{`{"struct":null}`, "/struct", "must be an object"},
		{`{"structs":[{},{"b":{"C":1}}]}`, "/structs/1/b/C", "must be a string"},
	} {
		t.Run(tt.text, func(t *testing.T) {
			_, err := body.Parse([]byte(tt.text))
			if diff := cmp.Diff(details(tt.pointer, tt.detail), refusal(t, err).Details); diff != "" {
				t.Errorf("details (-want +got):\n%s", diff)
			}
		})
	}
}

func TestParseKeepsNothingOfTheBody(t *testing.T) {
	data := []byte(dog)
	pet, err := newPetBody(t, jsonbody.Options{}).Parse(data)
	if err != nil {
		t.Fatal(err)
	}
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
