package middleware_test

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
)

// echo reads the whole body, answers with it, and hands on what Read returned.
func echo(rs *apierror.Responder) http.Handler {
	return rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return err
		}
		_, err = w.Write(body)
		return err
	})
}

// untouched is a body that must not be read.
type untouched struct{ t *testing.T }

func (u untouched) Read([]byte) (int, error) {
	u.t.Error("the body was read")
	return 0, io.EOF
}

func TestBodyLimitByContentLength(t *testing.T) {
	h := middleware.BodyLimit(10, nil)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		t.Error("the handler was called")
	}))
	r := httptest.NewRequest("POST", "/", untouched{t})
	r.ContentLength = 11
	resp := serve(h, r)
	if got := code(t, resp); resp.StatusCode != 413 || got != "body_too_large" {
		t.Errorf("answered %d %q, want 413 body_too_large", resp.StatusCode, got)
	}
	if got := resp.Header.Get("Connection"); got != "close" {
		t.Errorf("Connection: %q, want close", got)
	}
	if got := resp.Header.Get("Retry-After"); got != "" {
		t.Errorf("Retry-After: %q, want none: the limit is not temporary", got)
	}
}

func TestBodyLimitByReading(t *testing.T) {
	ways := map[string]func(io.Reader) io.Reader{
		"at once":            func(r io.Reader) io.Reader { return r },
		"byte by byte":       iotest.OneByteReader,
		"with the error":     iotest.DataErrReader,
		"bytes with the EOF": func(r io.Reader) io.Reader { return iotest.OneByteReader(iotest.DataErrReader(r)) },
	}
	for way, wrap := range ways {
		for _, tt := range []struct {
			limit  int64
			length int
		}{{10, 0}, {10, 9}, {10, 10}, {10, 11}, {10, 5000}, {0, 0}, {0, 1}, {-1, 0}, {-1, 1}, {1 << 62, 10}, {1<<63 - 1, 10}} {
			body := strings.Repeat("x", tt.length)
			r := httptest.NewRequest("POST", "/", wrap(strings.NewReader(body)))
			r.ContentLength = -1
			resp := serve(middleware.BodyLimit(tt.limit, nil)(echo(nil)), r)
			closed := resp.Header.Get("Connection") == "close"

			if int64(tt.length) <= max(tt.limit, 0) {
				got, _ := io.ReadAll(resp.Body)
				if resp.StatusCode != 200 || string(got) != body || closed {
					t.Errorf("%s: body of %d with limit %d: %d, %d bytes arrived, connection closed %v; want all of them, and it kept",
						way, tt.length, tt.limit, resp.StatusCode, len(got), closed)
				}
				continue
			}
			if got := code(t, resp); resp.StatusCode != 413 || got != "body_too_large" || !closed {
				t.Errorf("%s: body of %d with limit %d: %d %q, connection closed %v; want 413 body_too_large, and it closed",
					way, tt.length, tt.limit, resp.StatusCode, got, closed)
			}
		}
	}
}

func TestBodyLimitRead(t *testing.T) {
	h := middleware.BodyLimit(10, nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got, err := io.ReadAll(r.Body)
		if string(got) != "0123456789" {
			t.Errorf("read %q before the error, want the bytes up to the limit", got)
		}
		tooLarge, ok := errors.AsType[*http.MaxBytesError](err)
		if !ok || tooLarge.Limit != 10 {
			t.Errorf("error %v does not hold an *http.MaxBytesError with the limit 10", err)
		}
		public, ok := errors.AsType[*apierror.Error](err)
		if !ok || public.Status != 413 || public.Code != "body_too_large" {
			t.Errorf("error %v does not hold an *apierror.Error of status 413", err)
		}
		if n, again := r.Body.Read(make([]byte, 1)); n != 0 || again != err {
			t.Errorf("the next Read returns %d, %v, want the same error", n, again)
		}
	}))
	r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("0123456789"), strings.NewReader("x")))
	serve(h, r)
}

// A reverse proxy reads the body in a goroutine of its own, while the handler may already
// write the header of the response.
func TestBodyLimitReadLeavesTheHeaderAlone(t *testing.T) {
	for name, write := range map[string]func(http.ResponseWriter){
		"after WriteHeader": func(w http.ResponseWriter) { w.WriteHeader(413) },
		"after a Write":     func(w http.ResponseWriter) { io.WriteString(w, "too long") },
		"without a Write":   func(http.ResponseWriter) {},
	} {
		h := middleware.BodyLimit(10, nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			io.Copy(io.Discard, r.Body)
			if got := w.Header(); len(got) != 0 {
				t.Errorf("%s: Read has set %v in the header", name, got)
			}
			write(w)
		}))
		r := httptest.NewRequest("POST", "/", io.MultiReader(strings.NewReader("0123456789x")))
		if got := serve(h, r).Header.Get("Connection"); got != "close" {
			t.Errorf("%s: Connection: %q, want close", name, got)
		}
	}
}

func TestBodyLimitPassesOtherErrorsAndClose(t *testing.T) {
	broken := errors.New("connection reset")
	body := &closable{Reader: iotest.ErrReader(broken)}
	h := middleware.BodyLimit(10, nil)(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := r.Body.Read(make([]byte, 1)); err != broken {
			t.Errorf("Read returns %v, want the error of the connection", err)
		}
		r.Body.Close()
	}))
	r := httptest.NewRequest("POST", "/", nil)
	r.Body, r.ContentLength = body, -1
	serve(h, r)
	if !body.closed {
		t.Error("Close did not reach the body")
	}
	if r.Body != body {
		t.Error("the request of the caller was modified")
	}
}

type closable struct {
	io.Reader
	closed bool
}

func (c *closable) Close() error { c.closed = true; return nil }

func TestBodyLimitLeavesRequestsWithoutBodyAlone(t *testing.T) {
	r := httptest.NewRequest("GET", "/", nil)
	for _, body := range []io.ReadCloser{nil, http.NoBody} {
		r.Body = body
		serve(middleware.BodyLimit(0, nil)(http.HandlerFunc(func(w http.ResponseWriter, got *http.Request) {
			if got != r {
				t.Errorf("a request with the body %v was copied", body)
			}
		})), r)
	}
}

// wrapped stands for any middleware that wraps the ResponseWriter, which is what
// http.MaxBytesReader loses the connection's end by.
func wrapped(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(struct{ http.ResponseWriter }{w}, r)
	})
}

func TestBodyLimitOnTheWire(t *testing.T) {
	srv := httptest.NewServer(wrapped(middleware.BodyLimit(10, nil)(echo(nil))))
	defer srv.Close()
	tests := []struct {
		name, request string
		status        int
		closed        bool
	}{
		{"exactly the limit", "Content-Length: 10\r\n\r\n0123456789", 200, false},
		{"exactly the limit, chunked", "Transfer-Encoding: chunked\r\n\r\na\r\n0123456789\r\n0\r\n\r\n", 200, false},
		{"one byte over, chunked", "Transfer-Encoding: chunked\r\n\r\nb\r\n0123456789x\r\n0\r\n\r\n", 413, true},
		{"announced and never sent", "Content-Length: 11\r\n\r\n", 413, true},
		{"announced, waiting for 100", "Content-Length: 11\r\nExpect: 100-Continue\r\n\r\n", 413, true},
		{"no body", "Content-Length: 0\r\n\r\n", 200, false},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			conn := testcheck.Must(net.Dial("tcp", srv.Listener.Addr().String()))
			defer conn.Close()
			testcheck.Must(io.WriteString(conn, "POST / HTTP/1.1\r\nHost: x\r\n"+tt.request))
			// ReadResponse turns the field Connection into Response.Close.
			resp := testcheck.Must(http.ReadResponse(bufio.NewReader(conn), nil))
			if resp.StatusCode != tt.status || resp.Close != tt.closed {
				t.Errorf("answered %d, connection closed: %v; want %d, %v", resp.StatusCode, resp.Close, tt.status, tt.closed)
			}
		})
	}
}

// On HTTP/2 one request that is too large must not end the connection of the
// others.
func TestBodyLimitOnHTTP2(t *testing.T) {
	srv := httptest.NewUnstartedServer(middleware.BodyLimit(10, nil)(echo(nil)))
	srv.EnableHTTP2 = true
	var conns atomic.Int32
	srv.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			conns.Add(1)
		}
	}
	srv.StartTLS()
	defer srv.Close()
	post := func(body io.Reader) *http.Response {
		resp := testcheck.Must(srv.Client().Post(srv.URL, "text/plain", body))
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
		return resp
	}
	for range 3 {
		for name, body := range map[string]io.Reader{
			"announced":     bytes.NewReader(make([]byte, 11)),
			"not announced": io.MultiReader(bytes.NewReader(make([]byte, 11))),
		} {
			if resp := post(body); resp.ProtoMajor != 2 || resp.StatusCode != 413 {
				t.Errorf("%s: answered %s %d, want HTTP/2.0 413", name, resp.Proto, resp.StatusCode)
			}
		}
		if resp := post(strings.NewReader("short")); resp.StatusCode != 200 {
			t.Errorf("the next request is answered %d, want 200", resp.StatusCode)
		}
	}
	if got := conns.Load(); got != 1 {
		t.Errorf("%d connections, want 1: a 413 ends its stream only", got)
	}
}
