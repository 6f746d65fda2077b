package gatehouseecho_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"mime/multipart"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/labstack/echo/v5"

	"github.com/animalstore/gatehouse/adapters/gatehouseecho"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// stack returns a chain that wraps ResponseWriter and request several times.
func stack(t *testing.T, log *logbook) echo.MiddlewareFunc {
	return gatehouseecho.Wrap(middleware.RequestID, middleware.AccessLog(log.logger()), middleware.Recover(errs),
		limiter(t, limit.Options{ChargeIf: limit.NotServerError, Context: true}), middleware.BodyLimit(1<<20, errs))
}

// start serves the router with HTTP/1.1, or with HTTP/2.
func start(t *testing.T, router *echo.Echo, http2 bool) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(router)
	server.EnableHTTP2 = http2
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

// Each part of a stream arrives when it was flushed, and trailers travel both ways.
func TestStreamsAndTrailers(t *testing.T) {
	for _, http2 := range []bool{false, true} {
		var log logbook
		router := echo.New()
		router.Use(stack(t, &log))
		read := make(chan bool, 2) // by the client: the first line
		router.POST("/", func(c *echo.Context) error {
			body, _ := io.ReadAll(c.Request().Body)
			c.Response().Header().Set("Trailer", "After")
			for range 2 {
				io.WriteString(c.Response(), string(body)+c.Request().Trailer.Get("Sum")+"\n")
				c.Response().(http.Flusher).Flush()
				<-read
			}
			c.Response().Header().Set("After", "all")
			if err := http.NewResponseController(c.Response()).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
			return nil
		})
		server := start(t, router, http2)
		r, _ := http.NewRequest("POST", server.URL, io.MultiReader(strings.NewReader("body"))) // chunked
		r.Trailer = http.Header{"Sum": {"42"}}
		res, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
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
		res.Body.Close()
		server.Close()
		if line := log.line(t); line != (logLine{"/", 200, 14, false}) {
			t.Errorf("HTTP/2 %t: the log says %+v", http2, line)
		}
	}
}

// A hijacked connection is the handler's own, and the log has 101.
func TestHijack(t *testing.T) {
	var log logbook
	router := echo.New()
	router.Use(recovery, stack(t, &log))
	router.GET("/", func(c *echo.Context) error {
		conn, rw, err := http.NewResponseController(c.Response()).Hijack()
		if err != nil {
			return err
		}
		defer conn.Close()
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\nhello")
		return rw.Flush()
	})
	done := make(chan bool, 2)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		router.ServeHTTP(w, r)
		done <- true // the server does not wait for a hijacked connection
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "GET / HTTP/1.1\r\nHost: pets\r\n\r\n")
	if all, _ := io.ReadAll(conn); !strings.HasSuffix(string(all), "\r\n\r\nhello") {
		t.Errorf("got %q", all)
	}
	<-done
	server.Close()
	if got := log.buf.String(); !strings.Contains(got, `"status":101`) {
		t.Errorf("the log lacks 101: %s", got)
	}
}

// net/http removes the temporary files of a form that a handler of Echo parsed.
func TestTemporaryFilesAreRemoved(t *testing.T) {
	for name, use := range map[string]echo.MiddlewareFunc{"no copy": gatehouseecho.Wrap(middleware.SecurityHeaders), "copies": stack(t, new(logbook))} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		router := echo.New()
		router.Use(use)
		router.POST("/", func(c *echo.Context) error {
			if err := c.Request().ParseMultipartForm(1); err != nil {
				t.Error(err)
			}
			if files, _ := os.ReadDir(dir); len(files) != 1 {
				t.Errorf("%s: %d files while the handler runs, want 1", name, len(files))
			}
			return nil
		})
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		part, _ := form.CreateFormFile("file", "a.txt")
		part.Write(make([]byte, 1<<17))
		form.Close()
		server := httptest.NewServer(router)
		res, err := http.Post(server.URL, form.FormDataContentType(), &body)
		if err != nil {
			t.Fatal(err)
		}
		res.Body.Close()
		server.Close()
		if files, _ := os.ReadDir(dir); len(files) != 0 {
			t.Errorf("%s: %d files are left", name, len(files))
		}
	}
}

// Echo does not get its Context back while a goroutine of a middleware still uses it.
func TestMiddlewareWithAGoroutine(t *testing.T) {
	router := echo.New()
	router.Use(gatehouseecho.Wrap(func(next http.Handler) http.Handler {
		return http.TimeoutHandler(next, time.Millisecond, "too late")
	}))
	router.GET("/", func(c *echo.Context) error {
		<-c.Request().Context().Done()
		c.Set("key", "value")
		return c.String(200, "done")
	})
	if got := serve(t, router)("GET", "/", ""); got.status != 503 || got.body != "too late" {
		t.Errorf("got %d %q, want the timeout", got.status, got.body)
	}
}

// Context finds what handlers of Echo have set.
func TestContext(t *testing.T) {
	user := ""
	router := echo.New()
	router.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error { c.Set("user", "ann"); return next(c) }
	}, gatehouseecho.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user = gatehouseecho.Context(r).Get("user").(string)
			next.ServeHTTP(w, r)
		})
	}))
	router.GET("/", func(*echo.Context) error { return nil })
	serve(t, router)("GET", "/", "")
	if user != "ann" {
		t.Errorf("the user is %q, want ann", user)
	}
	if c := gatehouseecho.Context(httptest.NewRequest("GET", "/", nil)); c != nil {
		t.Errorf("outside of Wrap there is a context: %v", c)
	}
}

// The recovery of Echo passes http.ErrAbortHandler on.
func TestAbort(t *testing.T) {
	e := withEnds(recovery, gatehouseecho.Wrap(middleware.Recover(errs)))
	if got := serve(t, e)("GET", "/late", ""); got.err == nil || got.body != "half" {
		t.Errorf("a response that was broken off looks complete: %q", got.body)
	}
}

// Echo.Pre runs before the router: the route is known afterwards.
func TestPre(t *testing.T) {
	var log logbook
	e := withEnds()
	e.Pre(gatehouseecho.Wrap(middleware.AccessLog(log.logger())))
	serve(t, e)("GET", "/ok", "")
	if line := log.line(t); line != (logLine{"/ok", 200, 2, false}) {
		t.Errorf("the log says %+v", line)
	}
}

// Trailers that the client did not announce arrive, and servers around the router see the
// route.
func TestUnannouncedTrailersAndPattern(t *testing.T) {
	router := echo.New()
	router.Use(gatehouseecho.Wrap(middleware.SecurityHeaders))
	sum, pattern := "", ""
	router.POST("/pets/:id", func(c *echo.Context) error {
		io.Copy(io.Discard, c.Request().Body)
		sum = c.Request().Trailer.Get("Sum")
		return nil
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		router.ServeHTTP(w, r)
		pattern = r.Pattern
	}))
	defer server.Close()
	conn, err := net.Dial("tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	io.WriteString(conn, "POST /pets/17 HTTP/1.1\r\nHost: pets\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nbody\r\n0\r\nSum: 42\r\n\r\n")
	io.ReadAll(conn)
	server.Close()
	if sum != "42" || pattern != "/pets/:id" {
		t.Errorf("trailer %q, pattern %q", sum, pattern)
	}
}

// A handler of Echo around Wrap gets the error, which was answered once, and finds the
// Response that it had.
func TestErrorsTravelOn(t *testing.T) {
	sorry := errors.New("sorry")
	e := echo.New()
	e.HTTPErrorHandler = gatehouseecho.ErrorHandler(errs)
	e.Use(func(next echo.HandlerFunc) echo.HandlerFunc {
		return func(c *echo.Context) error {
			before := c.Response()
			err := next(c)
			if err != sorry || c.Response() != before {
				t.Errorf("got %v, and another Response: %t", err, c.Response() != before)
			}
			return err
		}
	}, gatehouseecho.Wrap(middleware.Recover(errs)))
	e.GET("/", func(*echo.Context) error { return sorry })
	e.GET("/begun", func(c *echo.Context) error {
		c.String(200, "half")
		return sorry
	})
	send := serve(t, e)
	if got := send("GET", "/", ""); got.code() != "internal" {
		t.Errorf("the answer is %q", got.body)
	}
	if got := send("GET", "/begun", ""); got.status != 200 || got.body != "half" {
		t.Errorf("a response that has begun becomes %d %q", got.status, got.body)
	}
}

// A middleware that calls the handlers only after it has returned does not reach them: Echo
// uses the Context for another request.
func TestCalledTooLate(t *testing.T) {
	release, done := make(chan struct{}), make(chan struct{})
	e := echo.New()
	e.Use(gatehouseecho.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			go func() {
				defer close(done)
				<-release
				next.ServeHTTP(w, r)
			}()
			w.WriteHeader(202)
		})
	}))
	e.GET("/", func(*echo.Context) error {
		t.Error("the handler is called after the response")
		return nil
	})
	if got := serve(t, e)("GET", "/", ""); got.status != 202 {
		t.Errorf("status %d, want 202", got.status)
	}
	close(release)
	<-done
}

// A middleware that replaces the context is a mistake that is named.
func TestReplacedContext(t *testing.T) {
	var recovered any
	e := echo.New()
	e.Use(gatehouseecho.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			defer func() { recovered = recover() }()
			next.ServeHTTP(w, r.WithContext(t.Context()))
		})
	}))
	e.GET("/", func(*echo.Context) error { t.Error("called"); return nil })
	serve(t, e)("GET", "/", "")
	if recovered != "gatehouseecho: a middleware has replaced the context of the request; it must derive one from it" {
		t.Errorf("recovered %v", recovered)
	}
}
