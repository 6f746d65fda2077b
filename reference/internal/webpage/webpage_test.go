package webpage_test

import (
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/animalstore/gatehouse/reference/internal/webpage"
)

func TestFiles(t *testing.T) {
	files, err := webpage.Files("/x", fstest.MapFS{"files/own.js": {Data: []byte("export {}")}})
	if err != nil {
		t.Fatal(err)
	}
	var paths []string
	for _, f := range files {
		paths = append(paths, f.Path+" "+f.ContentType)
	}
	want := []string{
		"/x/base.css text/css; charset=utf-8", "/x/dom.js text/javascript; charset=utf-8",
		"/x/icon.svg image/svg+xml", "/x/own.js text/javascript; charset=utf-8",
	}
	if !slices.Equal(paths, want) {
		t.Errorf("the files are %q, want %q", paths, want)
	}
	if _, err := webpage.Files("/x", fstest.MapFS{"files/own.exe": {}}); err == nil {
		t.Error("Files accepts a file of an unknown type")
	}
	if _, err := webpage.Files("/x", fstest.MapFS{}); err == nil {
		t.Error("Files accepts a page without files")
	}
}

// Nothing that the policy allows lets text become code.
func TestPolicy(t *testing.T) {
	for _, word := range []string{"unsafe", "data:", "http", "*"} {
		if strings.Contains(webpage.Policy, word) {
			t.Errorf("the policy has %q: %s", word, webpage.Policy)
		}
	}
}
