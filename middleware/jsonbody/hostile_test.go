package jsonbody_test

import (
	"fmt"
	"runtime"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

const (
	size   = 64 << 10 // bytes, the default limit
	values = 2_450    // just below the default limit
)

// fill puts an element as often into a body as the limits let it.
func fill(before, element, after string) string {
	return distinct(before, after, func(int) string { return element })
}

// distinct is fill with elements made of their number.
func distinct(before, after string, element func(i int) string) string {
	var b strings.Builder
	b.WriteString(before)
	for i := range values {
		e := element(i)
		if b.Len()+len(e)+1+len(after) > size {
			break
		}
		if i > 0 {
			b.WriteByte(',')
		}
		b.WriteString(e)
	}
	return b.String() + after
}

// trees returns nested arrays of n brackets each, all different.
func trees(n int) []string {
	if n == 0 {
		return []string{""}
	}
	var all []string
	for inside := range n {
		for _, in := range trees(inside) {
			for _, beside := range trees(n - 1 - inside) {
				all = append(all, "["+in+"]"+beside)
			}
		}
	}
	return all
}

var hostile = []struct {
	name, body string
}{
	{"nested arrays", strings.Repeat("[", size)},
	{"nested objects", strings.Repeat(`{"a":`, size/5)},
	{"nested to the limit, then wide", fill(`{"x":`+strings.Repeat("[", 14)+"[", "0", "]"+strings.Repeat("]", 14)+"}")},
	{"one long number", strings.Repeat("9", size)},
	{"one long fraction", "0." + strings.Repeat("9", size-2)},
	{"exponent that the validator panics on", `{"n":1e1000001,"list":[]}`},
	{"exponent that takes long", `{"n":1e999999,"list":[]}`},
	{"long exponent", `{"n":1e` + strings.Repeat("9", size-8) + `}`},
	{"too many numbers", `{"list":[` + strings.Repeat("0,", size/2-10) + "0]}"},
	{"numbers", fill(`{"list":[`, "0", "]}")},
	{"largest numbers", fill(`{"list":[`, "9e308", "]}")},
	{"smallest numbers", fill(`{"list":[`, "9e-308", "]}")},
	{"longest numbers", fill(`{"list":[`, strings.Repeat("9", 96)+"e308", "]}")},
	{"longest fractions", fill(`{"list":[`, "0."+strings.Repeat("9", 93)+"e-308", "]}")},
	{"largest numbers, different", distinct(`{"list":[`, "]}", func(i int) string { return fmt.Sprintf("%de300", i+1) })},
	{"smallest numbers, different", distinct(`{"list":[`, "]}", func(i int) string { return fmt.Sprintf("%de-300", i+1) })},
	{"escapes", `{"s":"` + strings.Repeat(`\u0041`, size/6-2) + `"}`},
	{"short escapes", `{"s":"` + strings.Repeat(`\n`, size/2-6) + `"}`},
	{"one long string", `{"s":"` + strings.Repeat(`a`, size-8) + `"}`},
	{"same name", fill("{", `"a":0`, "}")},
	{"same name, escaped", fill("{", `"\u0061":0`, "}")},
	{"many names", distinct("{", "}", func(i int) string { return fmt.Sprintf(`"%x":0`, i) })},
	{"long names above many values", longNames()},
	{"white space", strings.Repeat(" ", size)},
	{"white space inside", "[" + strings.Repeat(" ", size-2) + "]"},
	{"nulls", fill(`{"list":[`, "null", "]}")},
	{"empty objects", fill(`{"objects":[`, "{}", "]}")},
	{"numbers against an enum", fill(`{"codes":[`, "99", "]}")},
	{"smallest numbers against an enum", fill(`{"codes":[`, "9e-308", "]}")},
	{"longest fractions against an enum", fill(`{"codes":[`, "0."+strings.Repeat("9", 93)+"e-308", "]}")},
	{"quotes", strings.Repeat(`"`, size)},
	{"backslashes", `"` + strings.Repeat(`\`, size-1)},
	{"commas", "[" + strings.Repeat(",", size-1)},
	{"minus signs", strings.Repeat("-", size)},
	{"not UTF-8", strings.Repeat("\xff", size)},
	{"byte order marks", strings.Repeat("\uFEFF", size/3)},
}

// longNames nests names that the validator escapes to three times their length.
func longNames() string {
	before, after := "", ""
	for range 13 {
		before += `{"` + strings.Repeat("\u00e9", 18) + `":`
		after += "}"
	}
	return fill(before+`{"list":[`, "0", "]}"+after)
}

// hostileSchema asks much of a body, as a schema of a real service may: items of a
// list are looked at in several ways and have to be unique, members recurse.
var hostileSchema = `{
	"type": "object",
	"properties": {
		"n": {"type": "integer", "minimum": -5, "maximum": 5, "multipleOf": 0.01},
		"s": {"type": "string", "maxLength": 100, "pattern": "^(a|b)*\\x0a?c$"},
		"list": {
			"type": "array", "uniqueItems": true,
			"items": {"anyOf": [{"type": "integer", "minimum": 3, "maximum": 1e300}, {"type": "array"}]}
		},
		"codes": {"type": "array", "items": {"enum": [` + numbersTo(200) + `]}},
		"objects": {"type": "array", "items": {"type": "object", "required": ["a", "b", "c"]}}
	},
	"additionalProperties": {"$ref": "#"}
}`

// numbersTo returns the numbers from 0 to n, separated by commas.
func numbersTo(n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, "%d, ", i)
	}
	return b.String() + fmt.Sprint(n)
}

func TestHostileBodiesAreCheap(t *testing.T) {
	body := bodyOf[any](t, hostileSchema, jsonbody.Options{})
	for _, tt := range hostile {
		t.Run(tt.name, func(t *testing.T) { cheap(t, body, tt.body) })
	}
}

// Done plainly, uniqueItems compares every item with every other. Here no limit on
// values keeps that cheap.
func TestUniqueItemsIsCheap(t *testing.T) {
	body := bodyOf[any](t, `{"type": "array", "uniqueItems": true}`, jsonbody.Options{MaxValues: 1 << 20})
	shapes := trees(11)
	for _, tt := range []struct {
		name string
		item func(i int) string
	}{
		{"long arrays that differ at their end", func(i int) string {
			return "[" + strings.Repeat("1e300,", size/6/21) + fmt.Sprint(i) + "]"
		}},
		{"arrays of as many brackets", func(i int) string {
			return "[" + strings.ReplaceAll(shapes[i%len(shapes)], "][", "],[") + "]"
		}},
		{"strings split at different places", func(i int) string {
			var b strings.Builder
			b.WriteString(`["`)
			for bit := range 12 {
				b.WriteString([]string{`a\u0003`, `a","`}[i>>bit&1])
			}
			return b.String() + `"]`
		}},
		{"numbers and their negatives", func(i int) string { return fmt.Sprint((i + 1) / 2 * (i%2*2 - 1)) }},
	} {
		t.Run(tt.name, func(t *testing.T) {
			data := distinct("[", "]", tt.item)
			cheap(t, body, data)
			if _, err := body.Parse([]byte(data)); err != nil {
				t.Errorf("Parse: %v, though all items differ", err)
			}
		})
	}
}

// cheap wants 64 KiB of anything to allocate at most 64 MiB in all, which bounds the
// work. BenchmarkHostile tells the time.
func cheap(t *testing.T, body *jsonbody.Body[any], text string) {
	t.Helper()
	const memory = uint64(64 << 20)
	if len(text) > size {
		t.Fatalf("the body has %d bytes, more than are read", len(text))
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err := body.Parse([]byte(text))
	runtime.ReadMemStats(&after)
	if err != nil {
		refusal(t, err)
	}
	if allocated := after.TotalAlloc - before.TotalAlloc; allocated > memory {
		t.Errorf("Parse allocated %d MiB, promised are at most %d", allocated>>20, memory>>20)
	}
}

func BenchmarkHostile(b *testing.B) {
	body := testcheck.Must(jsonbody.New[any]([]byte(hostileSchema), "#", jsonbody.Options{}))
	for _, tt := range hostile {
		b.Run(tt.name, func(b *testing.B) {
			data := []byte(tt.body)
			b.ReportAllocs()
			for b.Loop() {
				_, _ = body.Parse(data) // most are refused
			}
		})
	}
}
