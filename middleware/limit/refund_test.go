package limit_test

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

// refunder is an engine that admits everything and passes on each refund's
// context.
type refunder struct {
	careless
	refunds chan context.Context
}

func (l refunder) Adjust(ctx context.Context, _ string, _ *ratelimit.Decision, _ int64, _ string) error {
	l.refunds <- ctx
	return nil
}

// exchange sends request over a connection of its own to a server whose handler
// calls work and then answers 503. It reports whether the units were given back.
// If hangUp is set, the client goes away before the handler goes on.
func exchange(t *testing.T, request string, hangUp bool, work func(w http.ResponseWriter, r *http.Request)) bool {
	t.Helper()
	return exchangeWith(t, limit.Options{ChargeIf: limit.NotServerError}, request, hangUp, func(w http.ResponseWriter, r *http.Request) {
		work(w, r)
		w.WriteHeader(http.StatusServiceUnavailable)
	})
}

// exchangeWith does that with other options. The handler only calls work.
func exchangeWith(t *testing.T, opts limit.Options, request string, hangUp bool, work func(w http.ResponseWriter, r *http.Request)) bool {
	t.Helper()
	l := refunder{refunds: make(chan context.Context, 1)}
	started, gone, ended := make(chan struct{}), make(chan struct{}), make(chan struct{})
	h := handler(l, ratelimit.Caller{Subject: "a", Plan: tokens}, opts, func(w http.ResponseWriter, r *http.Request) {
		close(started)
		<-gone
		work(w, r)
	})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(ended)
		h.ServeHTTP(w, r)
	}))
	defer server.Close()

	conn := must(net.Dial("tcp", server.Listener.Addr().String()))
	defer func() { _ = conn.Close() }()
	go func() { _, _ = io.WriteString(conn, request) }()
	<-started
	if hangUp {
		_ = conn.Close()
		close(gone)
	} else {
		close(gone)
		if _, err := http.ReadResponse(bufio.NewReader(conn), nil); err != nil {
			t.Errorf("no response: %v", err)
		}
	}
	<-ended
	return len(l.refunds) == 1
}

const (
	bodyless  = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	withBody  = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhello"
	inChunks  = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"
	truncated = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 50\r\n\r\nhello"
	stalled   = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1000000\r\n\r\nabc"
	badChunk  = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\nx\r\n\r\n"
	badField  = "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\nx\r\n\r\n"
	expecting = "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n"
)

// A client that stays gets its units back, unless its body fails. One that goes away before the
// response pays, as far as the handler can notice that it is gone. The response waits for no
// body that the handler does not read.
func TestRefundOverHTTP1(t *testing.T) {
	const stays, hangsUp = false, true
	nothing := func(http.ResponseWriter, *http.Request) {}
	read := func(_ http.ResponseWriter, r *http.Request) { _, _ = io.ReadAll(r.Body) }
	closed := func(_ http.ResponseWriter, r *http.Request) { _ = r.Body.Close() }
	untilGone := func(w http.ResponseWriter, r *http.Request) { read(w, r); <-r.Context().Done() }
	duplex := func(w http.ResponseWriter, _ *http.Request) { _ = http.NewResponseController(w).EnableFullDuplex() }
	for _, tt := range []struct {
		name, request string
		hangUp        bool
		work          func(http.ResponseWriter, *http.Request)
		want          bool
	}{
		{"no body", bodyless, stays, nothing, true},
		{"unread body", withBody, stays, nothing, true},
		{"unread chunks", inChunks, stays, nothing, true},
		{"read body", withBody, stays, read, true},
		{"read chunks", inChunks, stays, read, true},
		{"read and closed body", withBody, stays, func(w http.ResponseWriter, r *http.Request) { read(w, r); closed(w, r) }, true},
		{"body closed unread", withBody, stays, closed, true},
		{"stalled body, closed unread", stalled, stays, closed, true},
		{"flushed response, unread body", withBody, stays, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(503)
			_ = http.NewResponseController(w).Flush()
		}, true},
		{"body that awaits 100 Continue", expecting, stays, nothing, true},
		{"malformed chunk", badChunk, stays, read, false},
		{"malformed trailer", badField, stays, read, false},
		{"full duplex, unread body", truncated, stays, duplex, true},
		{"no body, gone", bodyless, hangsUp, untilGone, false},
		{"read body, gone", withBody, hangsUp, untilGone, false},
		{"truncated body, gone", truncated, hangsUp, read, false},
		{"unread body, gone", withBody, hangsUp, nothing, true},
	} {
		if got := exchange(t, tt.request, tt.hangUp, tt.work); got != tt.want {
			t.Errorf("%s: refunded %v, want %v", tt.name, got, tt.want)
		}
	}
}

// A slowBody is a body whose first Read waits, if there is something to wait for, until it
// is closed or released. It ends with an error.
type slowBody struct {
	err              error
	reading, release chan struct{} // nil: no Read waits
	reads            atomic.Int32
	closed           atomic.Bool
}

func (b *slowBody) Read([]byte) (int, error) {
	if b.reads.Add(1) == 1 && b.reading != nil {
		close(b.reading)
		<-b.release
	}
	if b.closed.Load() {
		return 0, errors.New("body closed by handler")
	}
	return 0, b.err
}

func (b *slowBody) Close() error {
	b.closed.Store(true)
	if b.release != nil {
		close(b.release)
	}
	return nil
}

// A body that fails, or that the service waits for in vain, is not its fault. That it
// was closed is not a fault of the client. What the handler leaves is not read.
func TestRefundOfBodies(t *testing.T) {
	read := func(body io.ReadCloser) { _, _ = body.Read(make([]byte, 1)) }
	leave := func(io.ReadCloser) {}
	failed := errors.New("the length is not the declared one")
	for name, c := range map[string]struct {
		err   error // of reading the body
		wait  bool  // a goroutine of the handler reads it meanwhile
		work  func(body io.ReadCloser)
		want  bool
		reads int32
	}{
		"read":                   {io.EOF, false, read, true, 1},
		"not read":               {io.EOF, false, leave, true, 0},
		"broken":                 {failed, false, read, false, 1},
		"closed by net/http":     {http.ErrBodyReadAfterClose, false, read, true, 1},
		"closed, then read":      {io.EOF, false, func(body io.ReadCloser) { _ = body.Close(); read(body) }, true, 1},
		"waited for":             {io.EOF, true, leave, false, 1},
		"waited for, and closed": {io.EOF, true, func(body io.ReadCloser) { _ = body.Close() }, false, 1},
	} {
		l, body := refunder{refunds: make(chan context.Context, 1)}, &slowBody{err: c.err}
		if c.wait {
			body.reading, body.release = make(chan struct{}), make(chan struct{})
		}
		var reader sync.WaitGroup
		h := handler(l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{ChargeIf: limit.NotServerError}, func(w http.ResponseWriter, r *http.Request) {
			if c.wait {
				reader.Go(func() { read(r.Body) })
				<-body.reading
			}
			if c.work(r.Body); body.closed.Load() {
				reader.Wait()
			}
			w.WriteHeader(http.StatusGatewayTimeout)
		})
		r := httptest.NewRequest("POST", "/", nil)
		r.Body = body
		h.ServeHTTP(httptest.NewRecorder(), r)
		if got := len(l.refunds) == 1; got != c.want {
			t.Errorf("%s: refunded %v, want %v", name, got, c.want)
		}
		if n := body.reads.Load(); n != c.reads {
			t.Errorf("%s: read %d times, want %d", name, n, c.reads)
		}
		if c.wait && !body.closed.Load() {
			close(body.release)
		}
		reader.Wait()
	}
}

// A brokenResponse is one that cannot be written, which cancel follows, if it is not nil.
type brokenResponse struct {
	http.ResponseWriter
	cancel func()
}

func (b brokenResponse) Write([]byte) (int, error) {
	if b.cancel != nil {
		time.AfterFunc(time.Millisecond, b.cancel)
	}
	return 0, io.ErrClosedPipe
}

func (b brokenResponse) FlushError() error {
	_, err := b.Write(nil)
	return err
}

// If the connection of a client breaks, net/http lets writes over HTTP/2 fail before it
// cancels the context, and a handler may panic or return between.
func TestRefundAfterAWriteThatFails(t *testing.T) {
	for name, work := range map[string]func(w http.ResponseWriter) error{
		"Write":       func(w http.ResponseWriter) error { _, err := w.Write(make([]byte, 1)); return err },
		"WriteString": func(w http.ResponseWriter) error { _, err := io.WriteString(w, "x"); return err },
		"ReadFrom": func(w http.ResponseWriter) error {
			_, err := io.Copy(w, iotest.OneByteReader(strings.NewReader("x")))
			return err
		},
		"Flush": func(w http.ResponseWriter) error { return http.NewResponseController(w).Flush() },
	} {
		for _, gone := range []bool{false, true} {
			synctest.Test(t, func(t *testing.T) {
				l := refunder{refunds: make(chan context.Context, 1)}
				h := handler(l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{ChargeIf: limit.NotServerError}, func(w http.ResponseWriter, _ *http.Request) {
					if work(w) != nil {
						panic(http.ErrAbortHandler)
					}
				})
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				w := brokenResponse{ResponseWriter: httptest.NewRecorder()}
				if gone {
					w.cancel = cancel
				}
				func() {
					defer func() { _ = recover() }()
					h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, "GET", "/", nil))
				}()
				if got := len(l.refunds) == 1; got == gone {
					t.Errorf("%s: refunded %v, want %v", name, got, !gone)
				}
			})
		}
	}
}

// The service's own deadline is not the client's fault, and does not stop the refund.
func TestRefundAfterTheServicesDeadline(t *testing.T) {
	l := &flaky{Limiter: atNow()}
	h := handler(l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{ChargeIf: limit.NotServerError}, func(w http.ResponseWriter, r *http.Request) {
		<-r.Context().Done()
		w.WriteHeader(http.StatusGatewayTimeout)
	})
	ctx, cancel := context.WithDeadline(t.Context(), time.Unix(0, 0))
	defer cancel()
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil).WithContext(ctx))
	if l.changes != 1 || l.during != nil {
		t.Errorf("%d refunds, the context of the last one has the error %v; want one without", l.changes, l.during)
	}
	wantUsed(t, l.Limiter, "after the deadline", [2]int64{0, 0})
}

// Over HTTP/2 net/http notices a client that cancels at any time, whether or not the body
// was read.
func TestRefundOverHTTP2(t *testing.T) {
	for name, c := range map[string]struct {
		body   func() io.Reader
		cancel bool
	}{
		"stays":                     {func() io.Reader { return strings.NewReader("hello") }, false},
		"no body, cancels":          {func() io.Reader { return nil }, true},
		"body, cancels":             {func() io.Reader { return strings.NewReader("hello") }, true},
		"body without end, cancels": {func() io.Reader { r, _ := io.Pipe(); return r }, true},
	} {
		t.Run(name, func(t *testing.T) {
			l := refunder{refunds: make(chan context.Context, 1)}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			ended := make(chan struct{})
			h := handler(l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{ChargeIf: limit.NotServerError},
				func(w http.ResponseWriter, r *http.Request) {
					if c.cancel {
						cancel()
						<-r.Context().Done()
					}
					w.WriteHeader(http.StatusServiceUnavailable)
				})
			server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				defer close(ended)
				h.ServeHTTP(w, r)
			}))
			server.EnableHTTP2 = true
			server.StartTLS()
			defer server.Close()
			resp, err := server.Client().Do(must(http.NewRequestWithContext(ctx, http.MethodPost, server.URL, c.body())))
			if err == nil {
				_ = resp.Body.Close()
			}
			<-ended
			if got := len(l.refunds) == 1; got == c.cancel || (err != nil) != c.cancel || err == nil && resp.ProtoMajor != 2 {
				t.Errorf("refunded: %t, want %t; the client gets %v with error %v", got, !c.cancel, resp, err)
			}
		})
	}
}

func status(code int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(code) }
}

// ChargeIf is asked once, about the final status, and decides whether a request stays
// charged.
func TestChargeIf(t *testing.T) {
	flush := func(w http.ResponseWriter) { _ = http.NewResponseController(w).Flush() }
	over := make(chan struct{})
	defer close(over)
	slow := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over })
	for _, tt := range []struct {
		name   string
		next   http.HandlerFunc
		status int // 0: not asked
	}{
		{"a status", status(401), 401},
		{"not modified", status(304), 304},
		{"nothing written", func(http.ResponseWriter, *http.Request) {}, 200},
		{"a body alone", ok, 200},
		{"a flush alone", func(w http.ResponseWriter, _ *http.Request) { flush(w) }, 200},
		{"an empty body by io.Copy", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.Copy(w, strings.NewReader("")) }, 200},
		{"two statuses", func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(401)
			w.Header().Set("A", "b")
			_, _ = io.WriteString(w, "no")
		}, 401},
		{"1xx first", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); w.WriteHeader(401) }, 401},
		{"1xx alone", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103) }, 200},
		{"switching protocols", status(101), 101},
		{"a timeout further in", http.TimeoutHandler(slow, time.Millisecond, "late").ServeHTTP, 503},
		{"a stream", func(w http.ResponseWriter, _ *http.Request) {
			for range 3 {
				_, _ = io.WriteString(w, "event\n")
				flush(w)
			}
		}, 200},
		{"a panic", func(http.ResponseWriter, *http.Request) { panic("first") }, 500},
		{"a panic after 1xx", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(103); panic("early hints") }, 500},
		{"a panic in the body", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "half"); panic("half") }, 500},
		{"an aborted response", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(401); panic(http.ErrAbortHandler) }, 500},
		{"a panic after switching protocols", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(101); panic("late") }, 101},
	} {
		for _, charge := range []bool{true, false} {
			l := refunder{refunds: make(chan context.Context, 1)}
			var asked []int
			h := handler(l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{
				ChargeIf: func(_ *http.Request, status int) bool {
					asked = append(asked, status)
					return charge
				},
			}, tt.next)
			func() {
				defer func() { _ = recover() }()
				h.ServeHTTP(&strictRecorder{httptest.NewRecorder()}, httptest.NewRequest("GET", "/", nil))
			}()
			if !slices.Equal(asked, []int{tt.status}) {
				t.Errorf("%s: ChargeIf was asked about %v, want one question about %d", tt.name, asked, tt.status)
			}
			if given := len(l.refunds) == 1; given == charge {
				t.Errorf("%s, ChargeIf returns %t: given back is %t", tt.name, charge, given)
			}
		}
	}
}

// strictRecorder knows informational responses, which a ResponseRecorder takes for the
// final one.
type strictRecorder struct{ *httptest.ResponseRecorder }

func (r *strictRecorder) WriteHeader(status int) {
	if status >= 200 || status == 101 {
		r.ResponseRecorder.WriteHeader(status)
	}
}

// A connection that the handler takes over counts as 101, whatever is written to it.
func TestChargeIfOfAHijackedConnection(t *testing.T) {
	for _, charge := range []bool{true, false} {
		asked := 0
		opts := limit.Options{
			ChargeIf: func(_ *http.Request, status int) bool { asked = status; return charge },
		}
		given := exchangeWith(t, opts, bodyless, false, func(w http.ResponseWriter, _ *http.Request) {
			conn, rw, err := http.NewResponseController(w).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			defer func() { _ = conn.Close() }()
			_, _ = rw.WriteString("HTTP/1.1 503 Later\r\nContent-Length: 0\r\n\r\n")
			_ = rw.Flush()
		})
		if asked != 101 || given == charge {
			t.Errorf("asked about %d, and given back is %t; want 101 and %t", asked, given, !charge)
		}
	}
}
