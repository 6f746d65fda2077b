package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

func TestChainOrder(t *testing.T) {
	var seen []string
	note := func(name string) middleware.Middleware {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen = append(seen, name+" in")
				next.ServeHTTP(w, r)
				seen = append(seen, name+" out")
			})
		}
	}
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen = append(seen, "handler") })

	serve(middleware.Chain(h, note("first"), nil, note("second")), httptest.NewRequest("GET", "/", nil))
	want := []string{"first in", "second in", "handler", "second out", "first out"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the first middleware is the outermost, and a nil one is left out (-want +got):\n%s", diff)
	}

	seen = nil
	serve(middleware.Chain(h), httptest.NewRequest("GET", "/", nil))
	if diff := cmp.Diff([]string{"handler"}, seen); diff != "" {
		t.Errorf("a chain of none is the handler (-want +got):\n%s", diff)
	}
}

// serve has h answer r, and returns the response.
func serve(h http.Handler, r *http.Request) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w.Result()
}

// code returns the code in the error envelope that is resp's body.
func code(t *testing.T, resp *http.Response) string {
	t.Helper()
	body := testcheck.Must(io.ReadAll(resp.Body))
	var envelope struct{ Code string }
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Fatalf("body %q is not the error envelope: %v", body, err)
	}
	return envelope.Code
}

// ok answers 200.
var ok = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {})

// discard is a ResponseWriter that allocates nothing once its header has been
// used.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) WriteHeader(int)             {}
func (d *discard) Write(p []byte) (int, error) { return len(p), nil }

// A middleware that copies the request hides a form parsed further in from
// net/http, and so removes its temporary files itself.
func TestTemporaryFilesOfCopiedRequests(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	files := func() int {
		entries := testcheck.Must(os.ReadDir(dir))
		return len(entries)
	}
	parse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(0); err != nil || files() == 0 {
			t.Errorf("no temporary file to remove: %v", err)
		}
		panic(http.ErrAbortHandler)
	})
	auth := testcheck.Must(bearer.New("pets", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{}))
	for name, h := range map[string]http.Handler{
		"RequestID": middleware.RequestID(parse),
		"BodyLimit": middleware.BodyLimit(1<<20, nil)(parse),
		"bearer":    auth.Identify(parse),
	} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		file := testcheck.Must(form.CreateFormFile("photo", "rex.png"))
		_, _ = file.Write(make([]byte, 1000))
		_ = form.Close()
		r := httptest.NewRequest(http.MethodPost, "/", &body)
		r.Header.Set("Content-Type", form.FormDataContentType())
		func() {
			defer func() { _ = recover() }()
			h.ServeHTTP(httptest.NewRecorder(), r)
		}()
		if n := files(); n != 0 {
			t.Fatalf("%s leaves %d temporary files", name, n)
		}
	}
}
