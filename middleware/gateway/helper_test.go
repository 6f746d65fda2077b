package gateway_test

import (
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/gateway"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// protocols are those of the clients.
var protocols = map[string]bool{"HTTP/1.1": false, "HTTP/2": true}

// listen starts a server.
func listen(t *testing.T, h http.Handler, http2 bool) (*httptest.Server, *http.Client) {
	t.Helper()
	srv := httptest.NewUnstartedServer(h)
	srv.Config.ErrorLog = log.New(io.Discard, "", 0)
	srv.EnableHTTP2 = http2
	if http2 {
		srv.StartTLS()
	} else {
		srv.Start()
	}
	t.Cleanup(srv.Close)
	client := srv.Client()
	client.Transport.(*http.Transport).DisableCompression = true
	return srv, client
}

// to is a proxy to the server of backend.
func to(t *testing.T, backend http.HandlerFunc) *httputil.ReverseProxy {
	t.Helper()
	srv, _ := listen(t, backend, false)
	return toURL(srv.URL)
}

func toURL(raw string) *httputil.ReverseProxy {
	target := must(url.Parse(raw))
	return &httputil.ReverseProxy{
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(target)
			p.SetXForwarded()
		},
		ErrorLog: log.New(io.Discard, "", 0),
	}
}

func newGateway(proxy *httputil.ReverseProxy, errs *apierror.Responder) http.Handler {
	return must(gateway.New(proxy, errs))
}

// stack is every middleware that a gateway needs, around the proxy.
type stack struct {
	http.Handler
	limiter *memory.Limiter
	log     *testcheck.Log
	running sync.WaitGroup // requests
}

var plan = ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.Quota{Limit: 10, Window: fixedwindow.MaxLength})

func newStack(t *testing.T, proxy *httputil.ReverseProxy, o limit.Options) *stack {
	t.Helper()
	s := &stack{log: new(testcheck.Log)}
	logger := slog.New(slog.NewTextHandler(s.log, nil))
	errs := &apierror.Responder{Logger: logger, RequestID: middleware.RequestIDFrom}
	var err error
	if s.limiter, err = memory.New(memory.Options{}); err != nil {
		t.Fatal(err)
	}
	o.Errors = errs
	limited := must(limit.New(s.limiter, func(*http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: "ann", Plan: plan}, nil
	}, o))
	retired := deprecation.MustNew(deprecation.Options{
		Since:     time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC),
		Sunset:    time.Date(2100, time.December, 5, 0, 0, 0, 0, time.UTC),
		Successor: "/v2",
	})
	s.Handler = middleware.Chain(newGateway(proxy, errs), s.count,
		middleware.RequestID, middleware.AccessLog(logger), middleware.Recover(errs), middleware.SecurityHeaders,
		retired.Headers, limited, middleware.BodyLimit(1<<20, errs))
	return s
}

func (s *stack) count(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		s.running.Add(1)
		defer s.running.Done()
		next.ServeHTTP(w, r)
	})
}

// left returns what ann has left of 10 when all requests that have arrived have ended.
func (s *stack) left(t *testing.T) int64 {
	t.Helper()
	s.running.Wait()
	d := must(s.limiter.Peek(t.Context(), "ann", plan))
	return d.Remaining()
}

// send sends a request with header fields in pairs, and returns the response with its
// whole body.
func send(t *testing.T, client *http.Client, method, url string, body io.Reader, fields ...string) (*http.Response, string) {
	t.Helper()
	r := must(http.NewRequestWithContext(t.Context(), method, url, body))
	for i := 0; i < len(fields); i += 2 {
		r.Header.Add(fields[i], fields[i+1])
	}
	resp := must(client.Do(r))
	defer resp.Body.Close()
	all := must(io.ReadAll(resp.Body))
	return resp, string(all)
}

// setAll sets header fields given as "Name: value" lines.
func setAll(h http.Header, lines string) {
	for line := range strings.Lines(lines) {
		if name, value, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			h.Add(name, value)
		}
	}
}

// must returns v. It panics if what a test sets up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
