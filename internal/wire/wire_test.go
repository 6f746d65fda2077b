package wire

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
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

// A service writes each error in its own form and language: the header section stays, but
// for what describes the body. A translation finds each number of the message in Args.
func TestOwnForm(t *testing.T) {
	quiet.Translate = func(_ *http.Request, e *apierror.Error) string {
		for _, number := range regexp.MustCompile(`\d+`).FindAllString(e.Message, -1) {
			if !strings.Contains(fmt.Sprint(e.Args), number) {
				t.Errorf("%s: %q has the number %s, and Args are %v", e.Code, e.Message, number, e.Args)
			}
		}
		return "eigener Text"
	}
	quiet.Write = func(w http.ResponseWriter, _ *http.Request, e *apierror.Error) {
		w.Header().Set("Content-Type", "text/plain")
		w.WriteHeader(e.Status)
		fmt.Fprintf(w, "%s: %s", e.Code, e.Message)
	}
	defer func() { quiet.Translate, quiet.Write = nil, nil }()
	described := regexp.MustCompile(`(Content-Type|Content-Length|Vary|Date): .*\r\n`)
	code := regexp.MustCompile(`"code":"(\w+)"`)
	for _, part := range parts {
		for _, a := range part.answers {
			header, body, _ := strings.Cut(string(testcheck.Must(os.ReadFile(a.file()))), "\r\n\r\n")
			if header[len("HTTP/1.1 ")] < '4' {
				continue
			}
			t.Run(a.name, func(t *testing.T) {
				gotHeader, gotBody, _ := strings.Cut(string(exchange(t, a)), "\r\n\r\n")
				if want := code.FindStringSubmatch(body); want != nil && gotBody != want[1]+": eigener Text" {
					t.Errorf("the body is %q, want the code %s and the translation", gotBody, want[1])
				}
				want, got := described.ReplaceAllString(header+"\r\n", ""), described.ReplaceAllString(gotHeader+"\r\n", "")
				if diff := cmp.Diff(want, got); diff != "" {
					t.Errorf("header (-want +got):\n%s", diff)
				}
			})
		}
	}
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
		testcheck.NoError(t, os.WriteFile(file, got, 0o644))
		return
	}
	want := testcheck.Must(os.ReadFile(file))
	if diff := cmp.Diff(string(want), string(got)); diff != "" {
		t.Errorf("the code gives something else than %s has; if that is right, go test ./internal/wire -update writes it (-want +got):\n%s", file, diff)
	}
}

// stale returns the files in testdata that belong to no answer.
func stale(answers map[string]string) (names []string) {
	found := testcheck.Must(filepath.Glob("testdata/*.http"))
	known := slices.Collect(maps.Keys(answers))
	for _, file := range found {
		if name := strings.TrimSuffix(filepath.Base(file), ".http"); !slices.Contains(known, name) {
			names = append(names, file)
		}
	}
	return names
}
