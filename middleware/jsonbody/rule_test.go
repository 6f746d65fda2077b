package jsonbody_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/jsonbody"
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

// reads expects that the text is read as want, by encoding/json too.
func reads[T any](schema, text string, want T) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		got, err := bodyOf[T](t, schema, jsonbody.Options{}).Parse([]byte(text))
		if err != nil {
			t.Fatalf("Parse of %s: %v", text, err)
		}
		integers := cmp.Comparer(func(a, b big.Int) bool { return a.Cmp(&b) == 0 })
		exported := cmp.Exporter(func(reflect.Type) bool { return true })
		if diff := cmp.Diff(want, got, integers, exported); diff != "" {
			t.Errorf("Parse of %s (-want +got):\n%s", text, diff)
		}
		var standard T
		d := json.NewDecoder(strings.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&standard); err != nil {
			t.Fatalf("encoding/json: %v", err)
		}
		if diff := cmp.Diff(standard, got, integers, exported); diff != "" {
			t.Errorf("Parse of %s (-encoding/json +jsonbody):\n%s", text, diff)
		}
	}
}

// refuses expects that New takes the type, and that Parse refuses the text.
func refuses[T any](schema, text, pointer, detail string) func(*testing.T) {
	return func(t *testing.T) {
		t.Helper()
		_, err := bodyOf[T](t, schema, jsonbody.Options{}).Parse([]byte(text))
		if diff := cmp.Diff(details(pointer, detail), refusal(t, err).Details); diff != "" {
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
