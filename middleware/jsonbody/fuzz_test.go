package jsonbody_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"math/big"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/santhosh-tekuri/jsonschema/v5"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/jsonbody"
)

var seeds = []string{
	dog, `null`, `{}`, `[]`, ``, ` `, `{"name":"\u0041\ud83d\ude00","categoryId":1.0}`,
	`{"name":"Rex","categoryId":1e2,"categoryId":2}`, `{"NAME":"Rex","\u017ftatus":"sold","categoryId":-0}`,
	`{"name":"\ud800","categoryId":9223372036854775808}`, `{"name":"Rex","categoryId":1} x`,
	`[1,1.0,[[]],[],{"a":1e-5},"\u0000",true,null]`, `[[1],[10e-1]]`, `1e400`, "\uFEFF{}", "{\"a\":\"\xff\"}",
	`""`, " \t\r\n1 \t\r\n", `-0`, `10.50e+01`, `1E-5`, `12345678901234567890123456789012`, `[1,[2],{}]`,
	`{ "a" : 1 , "" : null }`, `{"a":1,"A":2,"á":3}`, `"\"\\\/\b\f\n\r\t"`, `"\u0041\u00e9\u20AC\uFFFD"`,
	`"\ud83d\ude00\uD83D\uDE00"`, "\"\u2028\x7f\ufeff😀\"", `"\\ud800"`,
}

// stricter are the reasons to refuse a text that encoding/json reads, beside what it repairs.
var stricter = regexp.MustCompile("more than|larger than|exponent")

// read is an independent reading of a text, by encoding/json. It is an error for
// all that encoding/json refuses, and for data after the value.
func read(data []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, err
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, io.ErrUnexpectedEOF
	}
	return v, nil
}

// A text of RFC 8259 is refused for the limits alone. Its tree is that of encoding/json, and
// the schema says the same about it as the validator alone, with its own uniqueItems.
func FuzzTree(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	const unique = `{"uniqueItems":true,"items":{"uniqueItems":true},"maxLength":5}`
	body := bodyOf[any](f, `{}`, jsonbody.Options{})
	checked := bodyOf[any](f, unique, jsonbody.Options{})
	schema := reference(f, unique, "#")
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := body.Parse(data)
		want, invalid := read(data)
		if err != nil {
			repaired := strings.Contains(fmt.Sprint(want), "\uFFFD")
			if reason := refusal(t, err).Message; invalid == nil && !repaired && !stricter.MatchString(reason) {
				t.Errorf("Parse refused %q, which encoding/json reads: %s", data, reason)
			}
			return
		}
		if invalid != nil {
			t.Fatalf("Parse accepted %q, which encoding/json refuses: %v", data, invalid)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Parse of %q (-encoding/json +jsonbody):\n%s", data, diff)
		}
		_, err = checked.Parse(data)
		if wantErr := schema.Validate(want); (err != nil) != (wantErr != nil) {
			t.Errorf("%q: got error %v, the validator alone says %v", data, err, wantErr)
		}
	})
}

// A value that is accepted for a type is the one of encoding/json. It refuses an integer
// such as 1.0, and elsewhere takes null for no change, which is refused here.
func FuzzTypes(f *testing.F) {
	type inner struct {
		Name  string
		Score *float32
	}
	type all struct {
		inner
		Base
		Bytes []byte
		Pair  [2]int8
		Big   *big.Int
		Color map[string]*color
		Own   optional
		Kids  []all
	}
	for _, s := range []string{
		`{"Name":"a","Score":1e39,"ID":1,"Bytes":"AA==","Pair":[1],"Big":-123456789012345678901234567890}`,
		`{"Score":0.1,"Color":{"a":"red","b":null},"Own":[],"Kids":[{"Own":null},{"ID":2}]}`,
		`{"Bytes":[1,255],"Pair":[1,2,3],"Own":"\u003c\/"}`, `{"Kids":null}`,
		`{"Bytes":"AB==","Own":1.50e2,"Pair":[]}`, `{"Bytes":"YWFh\nYWFh"}`, `{"Bytes":null,"Big":null,"Score":null}`,
	} {
		f.Add([]byte(s))
	}
	schema := strings.TrimSuffix(describe("Name", "Score", "ID", "Bytes", "Pair", "Big", "Color", "Own"), "}}") +
		`,"Kids":{"type":["array","null"],"items":{"$ref":"#"}}},"additionalProperties":false}`
	body := bodyOf[all](f, schema, jsonbody.Options{})
	f.Fuzz(func(t *testing.T, data []byte) {
		got, err := body.Parse(data)
		if err != nil {
			refusal(t, err)
			return
		}
		var want all
		if err := json.Unmarshal(data, &want); err != nil {
			if strings.Contains(err.Error(), "cannot unmarshal number") || strings.Contains(err.Error(), "math/big") {
				return
			}
			t.Fatalf("Parse accepted %q, which encoding/json refuses: %v", data, err)
		}
		options := cmp.Options{cmp.Exporter(func(reflect.Type) bool { return true }), cmp.Comparer(func(a, b big.Int) bool { return a.Cmp(&b) == 0 }),
			cmp.Transformer("JSON", func(o optional) any { v, _ := read([]byte(o.JSON)); return []any{o.Set, v} })}
		if diff := cmp.Diff(want, got, options); diff != "" {
			t.Errorf("Parse of %q (-encoding/json +jsonbody):\n%s", data, diff)
		}
	})
}

// Every number token is read as its exact value, or refused.
func FuzzInteger(f *testing.F) {
	for _, s := range []string{"0", "-0", "1.0", "1e2", "100e-2", "9223372036854775807", "-9223372036854775808", "9223372036854775808", "1.5", "0.0e9", "1e-1", "12e18", "1e0002", "10e-0001", "1e000309"} {
		f.Add(s)
	}
	body := bodyOf[int64](f, `{"type":"integer"}`, jsonbody.Options{})
	f.Fuzz(func(t *testing.T, token string) {
		got, err := body.Parse([]byte(token))
		if len(token) > 100 || strings.Trim(token, "+-.0123456789eE") != "" || !json.Valid([]byte(token)) {
			return
		}
		_, exponent, _ := strings.Cut(strings.ToLower(token), "e")
		if n, err := strconv.Atoi(exponent); exponent != "" && err != nil || n > 308 || n < -308 {
			return // beyond the limit, or too slow to compare
		}
		exact, _ := new(big.Rat).SetString(token)
		holds := exact.IsInt() && exact.Num().IsInt64()
		if (err == nil) != holds {
			t.Fatalf("%s: got error %v; an int64 holds it: %v", token, err, holds)
		}
		if holds && got != exact.Num().Int64() {
			t.Errorf("%s is read as %d, want %v", token, got, exact.Num())
		}
	})
}

// reference compiles a schema without anything of this package.
func reference(t testing.TB, document, at string) *jsonschema.Schema {
	t.Helper()
	c := jsonschema.NewCompiler()
	testcheck.NoError(t, c.AddResource("test:///", strings.NewReader(document)))
	return testcheck.Must(c.Compile("test:///" + at))
}
