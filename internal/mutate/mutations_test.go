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
		"n < 3 -> true || (n < 3)", "n < 3 -> false && (n < 3)", "< -> <=", "< -> >",
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

func TestEquivalentsAreNamedByTheirLines(t *testing.T) {
	dir := t.TempDir()
	source, list := filepath.Join(dir, "p.go"), filepath.Join(dir, "equivalent.txt")
	for file, text := range map[string]string{
		source: "package p\n\nfunc f(n int) bool {\n\treturn n < 3 && n > 1\n}\n",
		list:   "# a reason\np.go: return n < 3 && n > 1  ->  return n <= 3 && n > 1\n\np.go: n++  ->  n--\n",
	} {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	known, err := readEquivalents(list)
	if err != nil {
		t.Fatal(err)
	}
	found, err := mutations(source)
	if err != nil {
		t.Fatal(err)
	}
	var left []string
	for _, m := range found {
		if !known.has(m) {
			left = append(left, m.changed)
		}
	}
	want := []string{"return n < 3 || n > 1", "return n > 3 && n > 1", "return n < 3 && n >= 1", "return n < 3 && n < 1"}
	if diff := cmp.Diff(want, left); diff != "" {
		t.Errorf("the change in the list is passed over, the others are not (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"p.go: n++  ->  n--"}, known.unused()); diff != "" {
		t.Errorf("a line of the list that is no change any more is reported (-want +got):\n%s", diff)
	}
	if none, err := readEquivalents(filepath.Join(dir, "none.txt")); err != nil || len(none) > 0 {
		t.Errorf("without a list, none is equivalent; got %v, %v", none, err)
	}
}
