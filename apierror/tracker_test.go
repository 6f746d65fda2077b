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
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
)

// within runs h with the ResponseWriter that Recover makes around w.
func within(w http.ResponseWriter, h http.HandlerFunc) {
	rs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	rs.Recover(h).ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/", nil))
}

// plain has no optional method.
type plain struct{ http.ResponseWriter }

func TestWriterAboveAPlainOne(t *testing.T) {
	rec := httptest.NewRecorder()
	within(plain{rec}, func(w http.ResponseWriter, r *http.Request) {
		if err := http.NewResponseController(w).Flush(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Flush returned %v, want http.ErrNotSupported", err)
		}
		if _, _, err := http.NewResponseController(w).Hijack(); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Hijack returned %v, want http.ErrNotSupported", err)
		}
		if err := w.(http.Pusher).Push("/style.css", nil); !errors.Is(err, http.ErrNotSupported) {
			t.Errorf("Push returned %v, want http.ErrNotSupported", err)
		}
		select {
		case <-closeNotify(w):
			t.Error("CloseNotify says that the client has disconnected")
		default:
		}
		w.(http.Flusher).Flush() // has no effect
		panic("nothing is written yet")
	})
	golden(t, "internal.json", rec.Body.String())

	rec = httptest.NewRecorder()
	within(plain{rec}, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(w, io.LimitReader(strings.NewReader("copied, "), 100))
		_, _ = io.WriteString(w, "written")
	})
	if got := rec.Body.String(); got != "copied, written" {
		t.Errorf("body %q", got)
	}
}

// closeNotify is how gin learns that a client has disconnected.
func closeNotify(w http.ResponseWriter) <-chan bool {
	return w.(interface{ CloseNotify() <-chan bool }).CloseNotify()
}

// pusher supports what net/http supports beside ResponseController.
type pusher struct {
	http.ResponseWriter
	pushed []string
	gone   chan bool
}

func (p *pusher) Push(target string, _ *http.PushOptions) error {
	p.pushed = append(p.pushed, target)
	return nil
}

func (p *pusher) CloseNotify() <-chan bool { return p.gone }

// wrapper is the ResponseWriter of a middleware of others.
type wrapper struct{ http.ResponseWriter }

func (w wrapper) Unwrap() http.ResponseWriter { return w.ResponseWriter }

func TestWriterPushesAndNotifies(t *testing.T) {
	for name, wrap := range map[string]func(http.ResponseWriter) http.ResponseWriter{
		"directly":       func(w http.ResponseWriter) http.ResponseWriter { return w },
		"through Unwrap": func(w http.ResponseWriter) http.ResponseWriter { return wrapper{w} },
	} {
		p := &pusher{ResponseWriter: httptest.NewRecorder(), gone: make(chan bool, 1)}
		p.gone <- true
		within(wrap(p), func(w http.ResponseWriter, r *http.Request) {
			if err := w.(http.Pusher).Push("/style.css", nil); err != nil || len(p.pushed) != 1 {
				t.Errorf("%s: Push returned %v, and the writer below got %q", name, err, p.pushed)
			}
			select {
			case <-closeNotify(w):
			default:
				t.Errorf("%s: CloseNotify is not that of the writer below", name)
			}
		})
	}
}

// A panic after a hijack is logged, and nothing is written into the connection.
func TestHijackedConnectionIsLeftAlone(t *testing.T) {
	var logs logbook
	rs := &apierror.Responder{Logger: logs.logger()}
	h := rs.Recover(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Errorf("Hijack: %v", err)
			return
		}
		defer conn.Close()
		_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nhi")
		panic("the connection is not net/http's any more")
	}))
	done := make(chan struct{})
	srv := serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(done)
		h.ServeHTTP(w, r)
	}))
	res := exchange(t, srv, "GET / HTTP/1.1\nHost: api.test\n\n")
	if res.StatusCode != 200 || res.body != "hi" {
		t.Errorf("got %d %q, want what was written to the hijacked connection", res.StatusCode, res.body)
	}
	<-done
	if !strings.Contains(logs.String(), "handler panicked") {
		t.Errorf("the panic is not in the log: %q", &logs)
	}
}

// upload returns a multipart request with a file.
func upload(t *testing.T) *http.Request {
	t.Helper()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	file := testcheck.Must(form.CreateFormFile("photo", "rex.png"))
	_, _ = file.Write(bytes.Repeat([]byte("x"), 1000))
	testcheck.NoError(t, form.Close())
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
	if left(dir) == 0 {
		t.Error("the form has no temporary file: this test shows nothing")
	}
}

func left(dir string) int {
	files := testcheck.Must(os.ReadDir(dir))
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
			if n := left(dir); n != 0 {
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
	if left(dir) == 0 {
		t.Error("Handle removed the files of a form that was parsed before it")
	}
}
