package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestMutations(t *testing.T) {
	const source = `package p

const a = 1 + 2

func f(n int) bool {
	if n < 3 {
		n = min(n, 5)
	}
	g()
	return true
}

func g() {}
`
	name := filepath.Join(t.TempDir(), "p.go")
	if err := os.WriteFile(name, []byte(source), 0o600); err != nil {
		t.Fatal(err)
	}
	found, err := mutations(name)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, m := range found {
		got = append(got, m.was+" -> "+m.with)
		changed := m.apply([]byte(source))
		if _, err := parser.ParseFile(token.NewFileSet(), "", changed, 0); err != nil {
			t.Errorf("%v: %v\n%s", m, err, changed)
		}
	}
	want := []string{
		" -> true || ", " -> false && ", "< -> <=", "< -> >",
		"n = min(n, 5) -> {}", "min -> max", "g() -> {}", "true -> false",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("the constant stays, everything else changes (-want +got):\n%s", diff)
	}
}

func TestCollectNamesWhatIsMissing(t *testing.T) {
	if _, err := collect(t.TempDir(), ""); err == nil {
		t.Error("a directory without sources was taken")
	}
	if _, err := collect(".", "("); err == nil {
		t.Error("a pattern that is not a regular expression was taken")
	}
}
