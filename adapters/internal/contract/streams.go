package contract

import (
	"bufio"
	"bytes"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// stack returns middlewares that wrap ResponseWriter and request several times.
func stack(t *testing.T, log *Log) Wrap {
	return Wrap{middleware.RequestID, middleware.AccessLog(log.Logger()), Errors.Recover,
		Limiter(t, limit.Options{ChargeIf: limit.NotServerError, Settle: true}), middleware.BodyLimit(1<<20, Errors)}
}

// Each part of a stream arrives when it was flushed, and trailers travel both ways.
func testStreams(t *testing.T, a Adapter) {
	for _, http2 := range []bool{false, true} {
		var log Log
		read := make(chan bool, 2) // by the client: the first line
		server := httptest.NewUnstartedServer(a.one("POST /", func(w http.ResponseWriter, r *http.Request) {
			body, _ := io.ReadAll(r.Body)
			w.Header().Set("Trailer", "After")
			for range 2 {
				_, _ = io.WriteString(w, string(body)+r.Trailer.Get("Sum")+"\n")
				w.(http.Flusher).Flush()
				<-read
			}
			w.Header().Set("After", "all")
			if err := http.NewResponseController(w).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
		}, stack(t, &log)...))
		server.EnableHTTP2 = http2
		server.StartTLS()
		defer server.Close()
		r, _ := http.NewRequest("POST", server.URL, io.MultiReader(strings.NewReader("body"))) // chunked
		r.Trailer = http.Header{"Sum": {"42"}}
		res, err := server.Client().Do(r)
		testcheck.NoError(t, err)
		lines := bufio.NewReader(res.Body)
		for range 2 {
			if line, err := lines.ReadString('\n'); line != "body42\n" {
				t.Errorf("HTTP/2 %t: got %q, %v", http2, line, err)
			}
			read <- true
		}
		if _, err := lines.ReadByte(); err != io.EOF || res.Trailer.Get("After") != "all" || res.ProtoMajor == 2 != http2 {
			t.Errorf("%s: at the end %v, trailers %v", res.Proto, err, res.Trailer)
		}
		_ = res.Body.Close()
		server.Close()
		if line := log.Line(t); line != (Line{"/", 200, 14, false}) {
			t.Errorf("HTTP/2 %t: the log says %+v", http2, line)
		}
	}
}

// Exchange sends the lines of a request to h over a connection of its own, and returns all
// that comes back once h has returned.
func Exchange(t *testing.T, h http.Handler, lines string) string {
	t.Helper()
	done := make(chan bool, 1)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.ServeHTTP(w, r)
		done <- true // the server does not wait for a hijacked connection
	}))
	defer server.Close()
	conn := testcheck.Must(net.Dial("tcp", server.Listener.Addr().String()))
	defer conn.Close()
	_, _ = io.WriteString(conn, lines)
	all, _ := io.ReadAll(conn)
	<-done
	return string(all)
}

// A hijacked connection is the handler's own, and the log has 101.
func testHijack(t *testing.T, a Adapter) {
	var log Log
	h := a.New([]Wrap{nil, stack(t, &log)}, map[string]http.HandlerFunc{"GET /": func(w http.ResponseWriter, _ *http.Request) {
		conn, rw, err := http.NewResponseController(w).Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		_, _ = rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\nhello")
		_ = rw.Flush()
	}})
	if got := Exchange(t, h, "GET / HTTP/1.1\r\nHost: pets\r\n\r\n"); !strings.HasSuffix(got, "\r\n\r\nhello") {
		t.Errorf("got %q", got)
	}
	if got := log.Line(t).Status; got != 101 {
		t.Errorf("the log has the status %d, want 101", got)
	}
}

// net/http removes the temporary files of a form that a handler of the router parsed.
func testTemporaryFiles(t *testing.T, a Adapter) {
	for name, use := range map[string]Wrap{"no copy": {middleware.SecurityHeaders}, "copies": stack(t, new(Log))} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		server := httptest.NewServer(a.one("POST /", func(_ http.ResponseWriter, r *http.Request) {
			if err := r.ParseMultipartForm(1); err != nil {
				t.Error(err)
			}
			if files, _ := os.ReadDir(dir); len(files) != 1 {
				t.Errorf("%s: %d files while the handler runs, want 1", name, len(files))
			}
		}, use...))
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, _ := form.CreateFormFile("file", "a.txt")
		_, _ = part.Write(make([]byte, 1<<17))
		_ = form.Close()
		res, err := http.Post(server.URL, form.FormDataContentType(), &body)
		testcheck.NoError(t, err)
		_ = res.Body.Close()
		server.Close()
		if files, _ := os.ReadDir(dir); len(files) != 0 {
			t.Errorf("%s: %d files are left", name, len(files))
		}
	}
}

// Trailers that the client did not announce arrive, and servers around the router see the
// route.
func testTrailersAndPattern(t *testing.T, a Adapter) {
	sum, pattern := "", ""
	router := a.one("POST /pets/:id", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		sum = r.Trailer.Get("Sum")
	}, middleware.SecurityHeaders)
	Exchange(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		router.ServeHTTP(w, r)
		pattern = r.Pattern
	}), "POST /pets/17 HTTP/1.1\r\nHost: pets\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nSum: 42\r\n\r\n")
	if sum != "42" || pattern != "/pets/:id" {
		t.Errorf("trailer %q, pattern %q", sum, pattern)
	}
}

// The router does not reuse its context while a goroutine of a middleware still uses it.
func testGoroutine(t *testing.T, a Adapter) {
	router := a.one("GET /", func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		_, _ = io.WriteString(w, "done")
	}, func(next http.Handler) http.Handler { return http.TimeoutHandler(next, time.Millisecond, "too late") })
	if got := Serve(t, router)("GET", "/", ""); got.Status != 503 || got.Body != "too late" {
		t.Errorf("got %d %q, want the timeout", got.Status, got.Body)
	}
}

// A middleware that calls the handlers only after it has returned does not reach them: the
// router uses its context for another request.
func testCalledTooLate(t *testing.T, a Adapter) {
	release, done := make(chan struct{}), make(chan struct{})
	router := a.one("GET /", func(http.ResponseWriter, *http.Request) { t.Error("the handler is called after the response") },
		func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				go func() {
					defer close(done)
					<-release
					next.ServeHTTP(w, r)
				}()
				w.WriteHeader(202)
			})
		})
	if got := Serve(t, router)("GET", "/", ""); got.Status != 202 {
		t.Errorf("status %d, want 202", got.Status)
	}
	close(release)
	<-done
}

// A middleware that replaces the context is a mistake that is named.
func testReplacedContext(t *testing.T, a Adapter) {
	var recovered any
	router := a.one("GET /", func(http.ResponseWriter, *http.Request) { t.Error("called") }, func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { recovered = recover() }()
			next.ServeHTTP(w, r.WithContext(t.Context()))
		})
	})
	Serve(t, router)("GET", "/", "")
	if want := a.Name + ": a middleware has replaced the context of the request; it must derive one from it"; recovered != want {
		t.Errorf("recovered %v, want %q", recovered, want)
	}
}
