package jsonbody_test

import (
	"encoding/json"
	"errors"
	"testing"
	"time"
)

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
		{"schema of numbers for text", newRefuses[colored](integerA, "field A: type jsonbody_test.color cannot hold")},
		{"texts by pointer", reads(anyA, `{"A":["red",null]}`, struct{ A []*color }{[]*color{ptr(color(1)), nil}})},

		{"JSON", reads(integerA, `{"A":7}`, option{optional{true, "7"}})},
		{"JSON of a string", reads(stringA, `{"A":"é\n"}`, option{optional{true, `"é\n"`}})},
		{"JSON null", reads(anyA, `{"A":null}`, option{optional{true, "null"}})},
		{"JSON absent", reads(anyA, `{}`, option{})},
		{"JSON by pointer", reads(anyA, `{"A":null}`, struct{ A *optional }{})},
		{"JSON refused", refuses[option](anyA, `{"A":false}`, "/A", "is not valid")},
		{"JSON of an object", refuses[option](anyA, `{"A":{}}`, "/A", "must not be an object or an array")},
		{"JSON of an array", refuses[option](anyA, `{"A":[]}`, "/A", "must not be an object or an array")},
		{"schema of objects for JSON", newRefuses[option](`{"properties":{"A":{"type":"object"}}}`, "field A: type jsonbody_test.optional cannot hold")},
		{"raw JSON", newRefuses[struct{ A json.RawMessage }](anyA, "field A: type json.RawMessage is not supported")},

		{"any", reads(anyA, `{"A":[18446744073709551616,{"b":null}]}`, any1{[]any{json.Number("18446744073709551616"), map[string]any{"b": nil}}})},
		{"interface with methods", newRefuses[struct{ A error }](anyA, "field A: type error is not supported")},
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
