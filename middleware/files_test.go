package middleware_test

import (
	"bytes"
	"context"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// A middleware that copies the request hides a form parsed further in from
// net/http, and so removes its temporary files itself.
func TestTemporaryFilesOfCopiedRequests(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	files := func() int {
		entries, err := os.ReadDir(dir)
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	parse := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := r.ParseMultipartForm(0); err != nil || files() == 0 {
			t.Errorf("no temporary file to remove: %v", err)
		}
		panic(http.ErrAbortHandler)
	})
	auth, err := bearer.New("pets", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, h := range map[string]http.Handler{
		"RequestID": middleware.RequestID(parse),
		"BodyLimit": middleware.BodyLimit(1<<20, nil)(parse),
		"bearer":    auth.Identify(parse),
	} {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		file, err := form.CreateFormFile("photo", "rex.png")
		if err != nil {
			t.Fatal(err)
		}
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
