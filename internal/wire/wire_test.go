package wire

import (
	"flag"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

var update = flag.Bool("update", false, "write testdata/*.http and docs/WIRE.md instead of comparing with them")

// An answer is one kind of response, and what the page says about it.
type answer struct {
	name    string // of its file in testdata
	title   string // its heading
	text    string // when it comes, and what a client should do
	request string // with line feeds only; "" means plainRequest

	// rest is sent after request and is not shown.
	rest string

	handler state
}

// A state returns the server's handler in the state in which a request meets it.
type state func(t *testing.T) http.Handler

// sent returns the request of the answer.
func (a answer) sent() string {
	if a.request == "" {
		return plainRequest
	}
	return a.request
}

func (a answer) file() string { return filepath.Join("testdata", a.name+".http") }

// Each answer has the bytes of its file in testdata, and docs/WIRE.md shows all of them.
func TestAnswers(t *testing.T) {
	files := make(map[string]string) // the name and what was received
	complete := true
	for _, part := range parts {
		for _, a := range part.answers {
			if _, twice := files[a.name]; twice {
				t.Fatalf("there are two answers with the name %s", a.name)
			}
			files[a.name] = ""
			complete = t.Run(a.name, func(t *testing.T) {
				got := exchange(t, a)
				files[a.name] = string(got)
				compare(t, a.file(), got)
				checkForm(t, string(got))
			}) && files[a.name] != "" && complete
		}
	}
	if !complete {
		return // some have failed, or -run has left them out
	}
	if stale := stale(files); len(stale) > 0 {
		t.Errorf("testdata has files of no answer, remove them: %s", strings.Join(stale, ", "))
	}
	checkCodes(t, files)
	compare(t, filepath.Join("..", "..", "docs", "WIRE.md"), page(files))
}

// checkForm checks what the head of the page says about every response.
func checkForm(t *testing.T, response string) {
	header, body, found := strings.Cut(response, "\r\n\r\n")
	switch isError := response[len("HTTP/1.1 ")] >= '4'; {
	case !found:
		t.Error("the header section does not end in an empty line")
	case strings.Contains(strings.ReplaceAll(header, "\r\n", ""), "\n"):
		t.Error("a line of the header section does not end in CR LF")
	case !isError:
	case !strings.Contains(header, "\r\nCache-Control: no-store\r\n"), !strings.Contains(header, "\r\nX-Content-Type-Options: nosniff\r\n"):
		t.Error("the error has no Cache-Control: no-store, or no X-Content-Type-Options: nosniff")
	case body != "" && strings.Index(body, "\n") != len(body)-1:
		t.Error("the body of the error is not one line that ends in LF")
	}
}

// compare compares a file with what its content should be, or writes it with -update.
func compare(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := must(os.ReadFile(file))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the code gives something else than %s has; if that is right, go test ./internal/wire -update writes it (-want +got):\n%s", file, diff)
	}
}

// stale returns the files in testdata that belong to no answer.
func stale(answers map[string]string) (names []string) {
	found := must(filepath.Glob("testdata/*.http"))
	known := slices.Collect(maps.Keys(answers))
	for _, file := range found {
		if name := strings.TrimSuffix(filepath.Base(file), ".http"); !slices.Contains(known, name) {
			names = append(names, file)
		}
	}
	return names
}
