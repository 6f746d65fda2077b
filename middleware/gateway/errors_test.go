package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/gateway"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit/transport"
)

func TestNewRefuses(t *testing.T) {
	rewrite := func(*httputil.ProxyRequest) {}
	for name, proxy := range map[string]*httputil.ReverseProxy{
		"nil":             nil,
		"no Rewrite":      {},
		"a Director":      {Director: func(*http.Request) {}},
		"both":            {Director: func(*http.Request) {}, Rewrite: rewrite},
		"a nil Transport": {Rewrite: rewrite, Transport: (*http.Transport)(nil)},
		"a nil function":  {Rewrite: rewrite, Transport: roundTripper(nil)},
	} {
		if h, err := gateway.New(proxy, nil); err == nil || h != nil {
			t.Errorf("New(%s) = %v, %v, want an error", name, h, err)
		}
	}
}

// roundTripper is a transport that is a function.
type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func failing(err error) roundTripper {
	return func(*http.Request) (*http.Response, error) { return nil, err }
}

var (
	errTeapot = apierror.New(http.StatusTeapot, "teapot", "The backend is a teapot.")
	errSecret = errors.New("dial tcp 10.0.0.7:9000: secret")
)

func TestErrors(t *testing.T) {
	closed := httptest.NewServer(nil)
	closed.Close()
	tests := []struct {
		name   string
		change func(*httputil.ReverseProxy)
		status int
		code   string
	}{
		{"the backend is down", func(p *httputil.ReverseProxy) {
			*p = *toURL(closed.URL)
		}, 502, "bad_gateway"},
		{"the backend switches to a protocol", func(p *httputil.ReverseProxy) {
			*p = *toURL(sends(t, "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: echo\r\nReferrer-Policy: origin\r\n\r\n"))
		}, 502, "bad_gateway"},
		{"the transport fails", func(p *httputil.ReverseProxy) { p.Transport = failing(errSecret) }, 502, "bad_gateway"},
		{"the transport times out", func(p *httputil.ReverseProxy) {
			p.Transport = failing(&net.OpError{Op: "dial", Err: os.ErrDeadlineExceeded})
		}, 504, "gateway_timeout"},
		{"a deadline of the service", func(p *httputil.ReverseProxy) { p.Transport = failing(context.DeadlineExceeded) }, 504, "gateway_timeout"},
		{"the transport says what", func(p *httputil.ReverseProxy) { p.Transport = failing(fmt.Errorf("wrapped: %w", errTeapot)) }, 418, "teapot"},
		{"ModifyResponse fails", func(p *httputil.ReverseProxy) {
			p.ModifyResponse = func(*http.Response) error { return errSecret }
		}, 502, "bad_gateway"},
		{"ModifyResponse replaces a response", func(p *httputil.ReverseProxy) {
			p.ModifyResponse = func(resp *http.Response) error {
				if got := resp.Header.Get("X-Request-Id"); got != "b" {
					t.Errorf("ModifyResponse gets X-Request-Id: %q, want the backend's, b", got)
				}
				return errTeapot
			}
		}, 418, "teapot"},
		{"the service answers", func(p *httputil.ReverseProxy) {
			p.Transport = failing(errSecret)
			p.ErrorHandler = func(w http.ResponseWriter, _ *http.Request, err error) {
				(*apierror.Responder)(nil).Respond(w, httptest.NewRequest("GET", "/", nil), errTeapot)
			}
		}, 418, "teapot"},
		{"Rewrite panics", func(p *httputil.ReverseProxy) {
			p.Rewrite = func(*httputil.ProxyRequest) { panic("no backend") }
		}, 500, "internal"},
	}
	for protocol, http2 := range protocols {
		for _, tt := range tests {
			t.Run(protocol+"/"+tt.name, func(t *testing.T) {
				proxy := to(t, func(w http.ResponseWriter, _ *http.Request) {
					setAll(w.Header(), "X-Request-Id: b\nETag: \"1\"")
				})
				tt.change(proxy)
				s := newStack(t, proxy, limit.Options{ChargeIf: limit.NotServerError})
				srv, client := listen(t, s, http2)
				resp, body := send(t, client, "GET", srv.URL, nil)
				if resp.StatusCode != tt.status || !strings.HasPrefix(body, `{"code":"`+tt.code+`",`) {
					t.Errorf("%d %s, want %d %s in the envelope", resp.StatusCode, body, tt.status, tt.code)
				}
				if strings.Contains(body, "secret") || resp.Header.Get("Etag") != "" {
					t.Errorf("the client gets what belongs to the backend: %v %s", resp.Header, body)
				}
				wantMiddlewares(t, resp.Header)
				want := int64(10) // given back
				if tt.status < 500 {
					want = 9
				}
				if got := s.left(t); got != want {
					t.Errorf("%d left, want %d", got, want)
				}
			})
		}
	}
}

// hijackable is a ResponseWriter with a connection that the client has closed.
type hijackable struct{ http.ResponseWriter }

func (hijackable) Hijack() (net.Conn, *bufio.ReadWriter, error) {
	server, client := net.Pipe()
	client.Close()
	return server, bufio.NewReadWriter(bufio.NewReader(server), bufio.NewWriter(server)), nil
}

// After an upgrade the gateway cannot answer any more.
func TestUpgradeOfAClosedConnection(t *testing.T) {
	h := newGateway(toURL(sends(t, "HTTP/1.1 101 S\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")), nil)
	r := httptest.NewRequest("GET", "/", nil)
	setAll(r.Header, "Connection: Upgrade\nUpgrade: echo")
	w := httptest.NewRecorder()
	defer func() {
		if v := recover(); v != http.ErrAbortHandler || w.Body.Len() > 0 {
			t.Errorf("the gateway writes %q and panics with %v, want nothing and ErrAbortHandler", w.Body, v)
		}
	}()
	h.ServeHTTP(hijackable{w}, r)
}

// raw sends a request as it is, and returns the response.
func raw(srv *httptest.Server, request string) (*http.Response, string) {
	conn := must(net.Dial("tcp", srv.Listener.Addr().String()))
	defer conn.Close()
	io.WriteString(conn, request)
	resp := must(http.ReadResponse(bufio.NewReader(conn), nil))
	body := must(io.ReadAll(resp.Body))
	return resp, string(body)
}

// What a client does wrong is not an error of the backend.
func TestRequestsThatFail(t *testing.T) {
	tests := []struct {
		name, request string
		status        int
		code          string
	}{
		{"a malformed body", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nno length\r\n", 400, "invalid_body"},
		{"a long body", "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n200000\r\n" + strings.Repeat("x", 0x200000), 413, "body_too_large"},
		{"a malformed upgrade", "GET / HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: \xe9\r\n\r\n", 400, "invalid_request"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := newStack(t, to(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), limit.Options{ChargeIf: limit.NotServerError})
			srv, _ := listen(t, s, false)
			resp, body := raw(srv, tt.request)
			if resp.StatusCode != tt.status || !strings.HasPrefix(body, `{"code":"`+tt.code+`",`) {
				t.Errorf("%d %s, want %d %s in the envelope", resp.StatusCode, body, tt.status, tt.code)
			}
			wantMiddlewares(t, resp.Header)
			if got := s.left(t); got != 9 {
				t.Errorf("%d left, want 9: it is not given back", got)
			}
			if log := s.log.String(); strings.Contains(log, "level=ERROR") {
				t.Errorf("logged as an error of the service: %s", log)
			}
		})
	}
}

// What the transport refuses to send for its form is not an error of the backend either. A
// client chooses the method over HTTP/2 freely. A backend that speaks HTTP/2 takes no
// upgrades, and may limit the header.
func TestRequestsThatCannotBeSent(t *testing.T) {
	empty := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})
	http1, _ := listen(t, empty, false)
	http2, client := listen(t, empty, true)
	for _, tt := range []struct {
		name    string
		change  func(r *http.Request)
		backend *httptest.Server
		status  int
	}{
		{"a malformed method", func(r *http.Request) { r.Method = "GE T" }, http1, 400},
		{"a usual one", func(*http.Request) {}, http2, 200}, // brings the settings of the backend
		{"an upgrade", func(r *http.Request) { setAll(r.Header, "Connection: Upgrade\nUpgrade: echo") }, http2, 400},
		{"a long header", func(r *http.Request) { r.Header.Set("X-Long", strings.Repeat("x", 2<<20)) }, http2, 431},
	} {
		proxy := toURL(tt.backend.URL)
		proxy.Transport = client.Transport
		s := newStack(t, proxy, limit.Options{ChargeIf: limit.NotServerError})
		r := httptest.NewRequest("GET", "/", nil)
		tt.change(r)
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if body := w.Body.String(); w.Code != tt.status || w.Code != 200 && !strings.HasPrefix(body, `{"code":"invalid_request",`) {
			t.Errorf("%s: %d %s, want %d invalid_request", tt.name, w.Code, body, tt.status)
		}
		if got := s.left(t); got != 9 {
			t.Errorf("%s: %d left, want 9: it is not given back", tt.name, got)
		}
		if log := s.log.String(); strings.Contains(log, "level=ERROR") {
			t.Errorf("%s: logged as an error of the service: %s", tt.name, log)
		}
	}
}

// A failure of the backend is not that of a body which fails too, or has ended. If the
// client disconnects while it sends the body, net/http may cancel the request first.
func TestBackendFailsWithABody(t *testing.T) {
	for name, tt := range map[string]struct {
		err    error // of the transport
		body   io.Reader
		status int
	}{
		"the body fails too":       {errSecret, iotest.ErrReader(io.ErrUnexpectedEOF), 502},
		"the body has ended":       {io.EOF, strings.NewReader("pets"), 502},
		"the client disconnects":   {context.Canceled, iotest.ErrReader(io.ErrUnexpectedEOF), 400},
		"the request is cancelled": {context.Canceled, strings.NewReader("pets"), 502},
	} {
		proxy := toURL("http://192.0.2.1")
		proxy.Transport = roundTripper(func(r *http.Request) (*http.Response, error) {
			_, _ = io.ReadAll(r.Body)
			return nil, tt.err
		})
		w := httptest.NewRecorder()
		newGateway(proxy, nil).ServeHTTP(w, httptest.NewRequest("POST", "/", tt.body))
		if w.Code != tt.status {
			t.Errorf("%s: %d %s, want %d", name, w.Code, w.Body, tt.status)
		}
	}
}

// The error of http.MaxBytesHandler is understood too.
func TestMaxBytesHandler(t *testing.T) {
	h := newGateway(to(t, func(w http.ResponseWriter, r *http.Request) { io.Copy(io.Discard, r.Body) }), nil)
	srv, client := listen(t, http.MaxBytesHandler(h, 3), false)
	if resp, body := send(t, client, "POST", srv.URL, io.MultiReader(strings.NewReader("pets"))); resp.StatusCode != 413 {
		t.Errorf("%d %s, want 413", resp.StatusCode, body)
	}
}

// A response that breaks off is given back, and looks broken to the client.
func TestBackendBreaksOff(t *testing.T) {
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			s := newStack(t, to(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Length", "10")
				io.WriteString(w, "pets")
			}), limit.Options{ChargeIf: limit.NotServerError})
			srv, client := listen(t, s, http2)
			resp, err := client.Get(srv.URL)
			if err == nil {
				_, err = io.ReadAll(resp.Body)
				resp.Body.Close()
			}
			if left := s.left(t); err == nil || left != 10 {
				t.Errorf("the client gets error %v, and %d are left; want one and 10", err, left)
			}
		})
	}
}

// A client that disconnects ends its request to the backend, and stays charged.
func TestClientDisconnects(t *testing.T) {
	for protocol, http2 := range protocols {
		t.Run(protocol, func(t *testing.T) {
			arrived, ended := make(chan struct{}), make(chan struct{})
			s := newStack(t, to(t, func(_ http.ResponseWriter, r *http.Request) {
				close(arrived)
				<-r.Context().Done()
				close(ended)
			}), limit.Options{ChargeIf: limit.NotServerError})
			srv, client := listen(t, s, http2)
			ctx, cancel := context.WithCancel(t.Context())
			go func() {
				<-arrived
				cancel()
			}()
			r := must(http.NewRequestWithContext(ctx, "GET", srv.URL, nil))
			if _, err := client.Do(r); err == nil {
				t.Error("a response after the end of the context")
			}
			<-ended
			if got := s.left(t); got != 9 {
				t.Errorf("%d left, want 9: an abandoned request stays charged", got)
			}
			if log := s.log.String(); !strings.Contains(log, "status=499") || !strings.Contains(log, "abandoned=true") || strings.Contains(log, "level=ERROR") {
				t.Errorf("log %s, want an abandoned request and no error", log)
			}
		})
	}
}

// Behind a transport that keeps within the limits of the backend, clients are told when
// to come back, the backend is left alone until then, and no request is charged.
func TestLimitsOfTheBackend(t *testing.T) {
	var sent atomic.Int32
	proxy := to(t, func(w http.ResponseWriter, _ *http.Request) {
		sent.Add(1)
		setAll(w.Header(), "Retry-After: 30\nX-RateLimit-Limit: 7\nX-RateLimit-Remaining: 0")
		w.WriteHeader(http.StatusTooManyRequests)
	})
	var err error
	if proxy.Transport, err = transport.New(transport.Options{MaxWait: -1}); err != nil {
		t.Fatal(err)
	}
	s := newStack(t, proxy, limit.Options{ChargeIf: limit.NotServerError})
	srv, client := listen(t, s, false)
	for range 3 {
		resp, body := send(t, client, "GET", srv.URL, nil)
		if resp.StatusCode != 503 || !strings.HasPrefix(body, `{"code":"unavailable",`) {
			t.Errorf("%d %s, want 503 unavailable", resp.StatusCode, body)
		}
		if got := resp.Header["Retry-After"]; len(got) != 1 || got[0] != "30" && got[0] != "29" {
			t.Errorf("Retry-After: %q, want 30", got)
		}
		wantMiddlewares(t, resp.Header)
	}
	if left := s.left(t); left != 10 || sent.Load() != 1 {
		t.Errorf("%d of 10 left, and %d requests sent to the backend; want 10 and 1", left, sent.Load())
	}
}

// untilRoom is the error of a transport that says how long the limit lasts.
type untilRoom struct {
	time.Duration
	cause error
}

func (u untilRoom) Error() string             { return "secret limit" }
func (u untilRoom) RetryAfter() time.Duration { return u.Duration }
func (u untilRoom) Unwrap() error             { return u.cause }

// Retry-After is never too short, and an error with a text of its own keeps it.
func TestRetryAfterOfTheTransport(t *testing.T) {
	for name, tt := range map[string]struct {
		err        error
		status     int
		retryAfter string
	}{
		"a part of a second":      {untilRoom{1001 * time.Millisecond, nil}, 503, "2"},
		"whole seconds":           {untilRoom{2 * time.Second, nil}, 503, "2"},
		"now":                     {untilRoom{0, nil}, 503, "1"},
		"a deadline":              {untilRoom{time.Minute, context.DeadlineExceeded}, 503, "60"},
		"wrapped":                 {fmt.Errorf("hop: %w", untilRoom{time.Minute, nil}), 503, "60"},
		"another answer":          {errTeapot.Wrap(untilRoom{time.Minute, nil}), 418, ""},
		"the same, another cause": {apierror.New(503, apierror.CodeUnavailable, "").Wrap(errSecret), 503, ""},
	} {
		t.Run(name, func(t *testing.T) {
			proxy := &httputil.ReverseProxy{Rewrite: func(*httputil.ProxyRequest) {}, Transport: failing(tt.err)}
			srv, client := listen(t, newStack(t, proxy, limit.Options{}), false)
			resp, body := send(t, client, "GET", srv.URL, nil)
			if resp.StatusCode != tt.status || resp.Header.Get("Retry-After") != tt.retryAfter || strings.Contains(body, "secret") {
				t.Errorf("%d, Retry-After: %q, %s; want %d, %q", resp.StatusCode, resp.Header.Get("Retry-After"), body, tt.status, tt.retryAfter)
			}
		})
	}
}
