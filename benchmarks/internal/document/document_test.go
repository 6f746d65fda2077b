package document_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/benchmarks/internal/document"
)

func write(t *testing.T, text string) (file string) {
	t.Helper()
	file = filepath.Join(t.TempDir(), "doc.md")
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func TestRenew(t *testing.T) {
	file := write(t, "before\n<!-- part: begin -->\nold\n<!-- part: end -->\nafter\n")
	if err := document.Check(file, "part"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second time changes nothing
		if err := document.Renew(file, "part", "new\n"); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("before\n<!-- part: begin -->\n\nnew\n\n<!-- part: end -->\nafter\n", string(got)); diff != "" {
		t.Errorf("renewed document (-want +got):\n%s", diff)
	}
}

func TestRenewWithoutMarkers(t *testing.T) {
	const text = "<!-- other: begin -->\n<!-- other: end -->\n"
	file := write(t, text)
	if err := document.Check(file, "part"); err == nil {
		t.Error("Check of a document without the two lines = nil, want an error")
	}
	if err := document.Renew(file, "part", "new\n"); err == nil {
		t.Error("a document without the two lines was renewed, want an error")
	}
	if got, err := os.ReadFile(file); err != nil || string(got) != text {
		t.Errorf("the document is now %q (%v), want it unchanged", got, err)
	}
}
