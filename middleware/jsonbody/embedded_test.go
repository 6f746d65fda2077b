package jsonbody_test

import (
	"net/netip"
	"strings"
	"testing"
	"time"
)

// describe returns a schema that describes members of these names, and asks nothing.
func describe(names ...string) string {
	return `{"type":"object","properties":{"` + strings.Join(names, `":{},"`) + `":{}}}`
}

type (
	Base   struct{ ID int }
	Other  struct{ ID int }
	Tagged struct {
		N int `json:"ID"`
	}
	Deep   struct{ Base }
	Point  struct{ X, Y int }
	First  struct{ Point }
	Second struct{ First }
	Third  struct{ Second }
	Loop   struct{ *Loop }
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
		hidden  struct{ lower }
		hiddenP struct{ *lower }
		hiddenN struct {
			lower `json:"base"`
		}
		shadow struct {
			Base
			ID string
		}
		tie struct {
			Base
			Other
		}
		tag struct {
			Base
			Tagged
		}
		tieBelow struct {
			Base
			Other
			ID int
		}
		loop struct {
			*Loop
			A string
		}
		skipped struct {
			Base `json:"-"`
			A    string
		}
		scalar struct{ Label }
		noted  struct{ word } //nolint:unused // encoding/json ignores it
	)
	run(t, []rule{
		{"fields", reads(both, `{"ID":1,"A":"x"}`, plain{Base{1}, "x"})},
		{"fields two levels down", reads(id, `{"ID":1}`, struct{ Deep }{Deep{Base{1}}})},
		{"pointer", reads(both, `{"ID":1,"A":"x"}`, pointer{&Base{1}, "x"})},
		{"two fields of a pointer", reads(describe("X", "Y"), `{"X":1,"Y":2}`, struct{ *Point }{&Point{1, 2}})},
		{"two fields four levels down", reads(describe("X", "Y"), `{"X":1,"Y":2}`, Third{Second{First{Point{1, 2}}}})},
		{"pointer that nothing is for", reads(both, `{"A":"x"}`, pointer{nil, "x"})},
		{"with a name", reads(`{"properties":{"base":`+id+`}}`, `{"base":{"ID":1}}`, named{Base{1}})},
		{"not exported", reads(id, `{"ID":1}`, hidden{lower{1}})},
		{"pointer to one that is not exported", newRefuses[hiddenP](id, "field lower.ID: is in an embedded pointer to a type that is not exported")},
		{"not exported, with a name", newRefuses[hiddenN](describe("base"), "field lower: is embedded with a name and not exported")},
		{"outer field first", reads(id, `{"ID":"x"}`, shadow{Base{}, "x"})},
		{"two of a name", newRefuses[tie](id, `field Other.ID: is the second field for the member "ID"`)},
		{"two of a name below a third", reads(id, `{"ID":1}`, tieBelow{ID: 1})},
		{"tagged one first", reads(id, `{"ID":1}`, tag{Tagged: Tagged{1}})},
		{"itself", reads(describe("A"), `{"A":"x"}`, loop{A: "x"})},
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
	type quoted struct {
		I int      `json:"i,string"`
		P *int8    `json:"p,string"`
		F float64  `json:",string"`
		B bool     `json:"b,string"`
		S string   `json:"s,string"`
		L []string `json:"l,string"`
	}
	schema := describe("i", "p", "F", "b", "s", "l")
	run(t, []rule{
		{"name of one minus sign", reads(describe("-"), `{"-":1}`, struct {
			A int `json:"-,"`
		}{1})},
		{"no name", reads(describe("A"), `{"A":1}`, struct {
			A int `json:",omitempty"`
		}{1})},
		{"name that is none", reads(describe("A"), `{"A":1}`, struct {
			A int `json:"a'b"`
		}{1})},
		{"any name", reads(describe("ä-1/$ "), `{"ä-1/$ ":1}`, struct {
			A int `json:"ä-1/$ "`
		}{1})},
		{"tagged one first", reads(describe("A"), `{"A":1}`, struct {
			A string
			B int `json:"A"`
		}{"", 1})},

		{"strings", reads(schema, `{"i":"-7","p":"1","F":"1.5","b":"true","s":"\"x\"","l":["x"]}`, quoted{-7, ptr(int8(1)), 1.5, true, "x", []string{"x"}})},
		{"nil for a pointer", reads(schema, `{"p":null}`, quoted{})},
		{"number in a string for uint64", reads(stringA, `{"A":"18446744073709551615"}`, struct {
			A uint64 `json:",string"`
		}{1<<64 - 1})},
		{"number outside of a string", refuses[quoted](schema, `{"i":7}`, "/i", "must be a string")},
		{"null", refuses[quoted](schema, `{"i":null}`, "/i", "must be a string")},
		{"no number", refuses[quoted](schema, `{"i":"x"}`, "/i", "contains text that is not valid JSON: unexpected character at offset 0")},
		{"no integer", refuses[quoted](schema, `{"i":"1.5"}`, "/i", "contains text that must be an integer")},
		{"out of range", refuses[quoted](schema, `{"p":"128"}`, "/p", "contains text that must be from -128 to 127")},
		{"array in a string", refuses[quoted](schema, `{"i":"[1]"}`, "/i", "contains text that must be an integer")},
		{"empty string", refuses[quoted](schema, `{"i":""}`, "/i", "contains text that is empty")},
		{"schema of numbers", newRefuses[struct {
			A int `json:",string"`
		}](integerA, "field A: type string cannot hold")},
	})
}
