package apierror_test

import (
	"bytes"
	"errors"
	"io"
	"log/slog"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
)

// upload returns a multipart request with a file.
func upload(t *testing.T) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file, err := form.CreateFormFile("photo", "rex.png")
	if err != nil {
		t.Fatal(err)
	}
	_, _ = file.Write(bytes.Repeat([]byte("x"), 1000))
	if err := form.Close(); err != nil {
		t.Fatal(err)
	}
	r := httptest.NewRequest(http.MethodPost, "/", &body)
	r.Header.Set("Content-Type", form.FormDataContentType())
	return r
}

// parse reads the form and lets net/http write its files to the disk.
func parse(t *testing.T, dir string, r *http.Request) {
	t.Helper()
	if err := r.ParseMultipartForm(0); err != nil {
		t.Error(err)
	}
	if left(t, dir) == 0 {
		t.Error("the form has no temporary file: this test shows nothing")
	}
}

func left(t *testing.T, dir string) int {
	t.Helper()
	files, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	return len(files)
}

// Temporary files go when the handler that parsed the form ends, however it does.
func TestTemporaryFilesAreRemoved(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	rs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	for name, end := range map[string]func(http.ResponseWriter) error{
		"success":                   func(http.ResponseWriter) error { return nil },
		"an error":                  func(http.ResponseWriter) error { return petNotFound },
		"an error after a response": func(w http.ResponseWriter) error { _, _ = io.WriteString(w, "x"); return errors.New("late") },
		"a panic":                   func(http.ResponseWriter) error { panic("lost") },
		"a panic with an abort":     func(http.ResponseWriter) error { panic(http.ErrAbortHandler) },
	} {
		handle := rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
			parse(t, dir, r)
			return end(w)
		})
		recovered := rs.Recover(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			parse(t, dir, r)
			if err := end(w); err != nil {
				panic(err)
			}
		}))
		for where, h := range map[string]http.Handler{"Handle": handle, "Recover": recovered} {
			func() {
				defer func() { _ = recover() }() // an abort
				h.ServeHTTP(httptest.NewRecorder(), upload(t))
			}()
			if n := left(t, dir); n != 0 {
				t.Fatalf("%s, ended by %s, leaves %d temporary files", where, name, n)
			}
		}
	}
}

// A form that an outer handler parsed still has its files when Handle is done.
func TestFilesOfAnOuterHandlerStay(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("TMPDIR", dir)
	t.Setenv("TMP", dir)
	r := upload(t)
	parse(t, dir, r)
	defer func() { _ = r.MultipartForm.RemoveAll() }()
	failing(nil, petNotFound).ServeHTTP(httptest.NewRecorder(), r)
	if left(t, dir) == 0 {
		t.Error("Handle removed the files of a form that was parsed before it")
	}
}
