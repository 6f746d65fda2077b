package gatehousegin_test

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

	"github.com/gin-gonic/gin"

	"github.com/animalstore/gatehouse/adapters/gatehousegin"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// stack returns a chain that wraps ResponseWriter and request several times.
func stack(t *testing.T, log *logbook) gin.HandlerFunc {
	return gatehousegin.Wrap(middleware.RequestID, middleware.AccessLog(log.logger()), middleware.Recover(errs),
		limiter(t, limit.Options{ChargeIf: limit.NotServerError, Context: true}), middleware.BodyLimit(1<<20, errs))
}

// start serves the router with HTTP/1.1, or with HTTP/2.
func start(t *testing.T, router *gin.Engine, http2 bool) *httptest.Server {
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
		router := gin.New()
		router.Use(stack(t, &log))
		read := make(chan bool, 2) // by the client: the first line
		router.POST("/", func(c *gin.Context) {
			body, _ := io.ReadAll(c.Request.Body)
			c.Header("Trailer", "After")
			parts := 0
			c.Stream(func(w io.Writer) bool {
				if parts++; parts == 2 {
					<-read
				}
				io.WriteString(w, string(body)+c.Request.Trailer.Get("Sum")+"\n")
				return parts < 2
			})
			c.Header("After", "all")
			if err := http.NewResponseController(c.Writer).SetWriteDeadline(time.Now().Add(time.Minute)); err != nil {
				t.Error(err)
			}
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
	router := gin.New()
	router.Use(recovery, stack(t, &log))
	router.GET("/", func(c *gin.Context) {
		conn, rw, err := c.Writer.Hijack()
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close()
		if !c.Writer.Written() {
			t.Error("after Hijack the response has not begun")
		}
		rw.WriteString("HTTP/1.1 101 Switching Protocols\r\n\r\nhello")
		rw.Flush()
	})
	router.GET("/late", func(c *gin.Context) {
		c.String(200, "body")
		c.Status(500)
		if c.Writer.Status() != 200 {
			t.Errorf("the status of a response that has begun becomes %d", c.Writer.Status())
		}
		if _, _, err := c.Writer.Hijack(); err == nil {
			t.Error("a connection is hijacked in the middle of a body")
		}
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
	res, err := http.Get(server.URL + "/late")
	if err != nil {
		t.Fatal(err)
	}
	res.Body.Close()
	server.Close()
	if got := log.buf.String(); !strings.Contains(got, `"status":101`) || !strings.Contains(got, `"status":200,"bytes":4`) {
		t.Errorf("the log lacks 101 or 200: %s", got)
	}
}

// net/http removes the temporary files of a form that a handler of Gin parsed.
func TestTemporaryFilesAreRemoved(t *testing.T) {
	for name, use := range map[string]gin.HandlerFunc{"no copy": gatehousegin.Wrap(middleware.SecurityHeaders), "copies": stack(t, new(logbook))} {
		dir := t.TempDir()
		t.Setenv("TMPDIR", dir)
		router := gin.New()
		router.Use(use)
		router.POST("/", func(c *gin.Context) {
			if err := c.Request.ParseMultipartForm(1); err != nil {
				t.Error(err)
			}
			if files, _ := os.ReadDir(dir); len(files) != 1 {
				t.Errorf("%s: %d files while the handler runs, want 1", name, len(files))
			}
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

// Gin does not get its Context back while a goroutine of a middleware still uses it.
func TestMiddlewareWithAGoroutine(t *testing.T) {
	router := gin.New()
	router.Use(gatehousegin.Wrap(func(next http.Handler) http.Handler {
		return http.TimeoutHandler(next, time.Millisecond, "too late")
	}))
	router.GET("/", func(c *gin.Context) {
		<-c.Request.Context().Done()
		c.Set("key", "value")
		c.String(200, "done")
	})
	if got := serve(t, router)("GET", "/", ""); got.status != 503 || got.body != "too late" {
		t.Errorf("got %d %q, want the timeout", got.status, got.body)
	}
}

// Context finds what handlers of Gin have set.
func TestContext(t *testing.T) {
	user := ""
	router := gin.New()
	router.Use(func(c *gin.Context) {
		c.Set("user", "ann")
		before := c.Writer
		c.Next()
		if c.Writer != before {
			t.Error("handlers around Wrap find another Writer after it")
		}
	}, gatehousegin.Wrap(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			user = gatehousegin.Context(r).GetString("user")
			next.ServeHTTP(w, r)
		})
	}))
	router.GET("/", func(*gin.Context) {})
	serve(t, router)("GET", "/", "")
	if user != "ann" {
		t.Errorf("the user is %q, want ann", user)
	}
	if c := gatehousegin.Context(httptest.NewRequest("GET", "/", nil)); c != nil {
		t.Errorf("outside of Wrap there is a context: %v", c)
	}
}

// What gin.Recovery and the default 404 lose is in the package comment.
func TestWhatGinKeepsOutside(t *testing.T) {
	router := gin.New()
	router.Use(recovery, gatehousegin.Wrap(middleware.Recover(errs)))
	router.GET("/", func(c *gin.Context) {
		c.String(200, "half")
		c.Writer.Flush()
		panic(http.ErrAbortHandler)
	})
	send := serve(t, router)
	if got := send("GET", "/", ""); got.err != nil {
		t.Errorf("gin.Recovery passes ErrAbortHandler on: %v; change the package comment", got.err)
	}
	var log logbook
	router = gin.New()
	router.Use(gatehousegin.Wrap(middleware.AccessLog(log.logger())))
	if got := serve(t, router)("GET", "/nowhere", ""); got.body != "404 page not found" {
		t.Errorf("got %q", got.body)
	}
	if line := log.line(t); line != (logLine{"", 404, 0, false}) {
		t.Errorf("the log says %+v", line)
	}
}

// Trailers that the client did not announce arrive, and servers around the router see the
// route.
func TestUnannouncedTrailersAndPattern(t *testing.T) {
	router := gin.New()
	router.Use(gatehousegin.Wrap(middleware.SecurityHeaders))
	sum, pattern := "", ""
	router.POST("/pets/:id", func(c *gin.Context) {
		io.Copy(io.Discard, c.Request.Body)
		sum = c.Request.Trailer.Get("Sum")
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
