// Package contract tests what adapters promise alike. TestLimits and TestCharges are for all
// that limit, and Test for adapters of routers: middlewares of net/http run around the
// handlers of the router and see what these do.
package contract

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"reflect"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/deprecation"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
)

// An Adapter is what is tested.
type Adapter struct {
	Name string // of the package

	// New returns a router that answers its own errors in the envelope. It has the routes
	// by patterns such as "GET /pets/:id", and those of Own.
	New func(use []Wrap, routes map[string]http.HandlerFunc) http.Handler

	// Own are responses that only this router makes.
	Own []Own
}

// A Wrap is middlewares in one call of the adapter's Wrap. The nil Wrap is the recovery of
// the router itself.
type Wrap []middleware.Middleware

// An Own is a request and what the access log says about its response.
type Own struct {
	Method, Path string
	Line
}

// ends are the ways in which a handler ends.
var ends = map[string]http.HandlerFunc{
	"GET /ok":       func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok") },
	"GET /nothing":  func(http.ResponseWriter, *http.Request) {},
	"GET /status":   func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) },
	"GET /notfound": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(404) },
	"GET /panic":    func(http.ResponseWriter, *http.Request) { panic("no") },
	"GET /late": func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, "half")
		_ = http.NewResponseController(w).Flush()
		panic("no")
	},
	"GET /pets/:id": func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(201)
		_, _ = io.WriteString(w, "rex")
	},
}

// Test tests an adapter.
func Test(t *testing.T, a Adapter) {
	t.Run("limits", func(t *testing.T) {
		TestLimits(t, HTTP(func(h http.Handler, m ...middleware.Middleware) http.Handler {
			return a.New([]Wrap{m}, map[string]http.HandlerFunc{"GET /:text": h.ServeHTTP, "HEAD /:text": h.ServeHTTP})
		}))
	})
	for name, test := range map[string]func(*testing.T, Adapter){
		"refunds": testRefunds, "HEAD of errors": testHeadOfErrors, "access log": testAccessLog,
		"each middleware": testEachMiddleware, "streams": testStreams, "hijack": testHijack,
		"temporary files": testTemporaryFiles, "trailers and pattern": testTrailersAndPattern,
		"goroutine": testGoroutine, "called too late": testCalledTooLate, "replaced context": testReplacedContext,
	} {
		t.Run(name, func(t *testing.T) { test(t, a) })
	}
}

// one returns a router with one route, and the middlewares in one Wrap.
func (a Adapter) one(pattern string, h http.HandlerFunc, m ...middleware.Middleware) http.Handler {
	return a.New([]Wrap{m}, map[string]http.HandlerFunc{pattern: h})
}

// A request is given back if it fails in any way, with the recovery of either side.
func testRefunds(t *testing.T, a Adapter) {
	limiter := func() middleware.Middleware { return Limiter(t, limit.Options{ChargeIf: limit.NotServerError}) }
	for name, use := range map[string][]Wrap{
		"Recover around the limit":   {{Errors.Recover, limiter()}},
		"Recover inside the limit":   {{limiter(), Errors.Recover}},
		"Recover in another Wrap":    {{limiter()}, {Errors.Recover}},
		"the router's own, outside":  {nil, {limiter()}},
		"the router's own, inside":   {{limiter()}, nil},
		"a nil middleware beside it": {nil, {nil, limiter()}},
	} {
		t.Run(name, func(t *testing.T) {
			send := Serve(t, a.New(use, ends))
			want := func(path string, status int, remaining string) {
				if got := send("GET", path, ""); got.Status != status || got.Remaining() != remaining {
					t.Errorf("%s: %d with %s left, want %d with %s", path, got.Status, got.Remaining(), status, remaining)
				}
			}
			want("/ok", 200, "2")
			want("/status", 503, "1") // given back, like the others
			want("/panic", 500, "1")
			for _, own := range a.Own {
				if own.Status >= 500 {
					want(own.Path, own.Status, "1")
				}
			}
			want("/notfound", 404, "1")
			want("/nothing", 200, "0")
			want("/ok", 429, "0")
		})
	}
}

// The response to HEAD has the header of that to GET, if the router answers it too.
func testHeadOfErrors(t *testing.T, a Adapter) {
	for name, use := range map[string][]Wrap{"a Wrap": {{middleware.SecurityHeaders}}, "Recover": {{Errors.Recover}}, "no Wrap": nil} {
		send := Serve(t, a.New(use, map[string]http.HandlerFunc{"POST /pets": func(http.ResponseWriter, *http.Request) {}}))
		for path, status := range map[string]int{"/nowhere": 404, "/pets": 405} {
			get, head := send("GET", path, ""), send("HEAD", path, "")
			get.Header.Del("Date")
			head.Header.Del("Date")
			if head.Status != status || !reflect.DeepEqual(get.Header, head.Header) {
				t.Errorf("%s: HEAD %s: %d with %v, GET has %v", name, path, head.Status, head.Header, get.Header)
			}
		}
	}
}

// The access log has route, status and bytes, whatever answered.
func testAccessLog(t *testing.T, a Adapter) {
	var log Log
	send := Serve(t, a.New([]Wrap{{middleware.RequestID, middleware.AccessLog(log.Logger()), Errors.Recover}}, ends))
	for _, test := range append([]Own{
		{"GET", "/pets/17", Line{"/pets/:id", 201, 3, false}},
		{"GET", "/nothing", Line{"/nothing", 200, 0, false}},
		{"GET", "/status", Line{"/status", 503, 0, false}},
		{"GET", "/panic", Line{"/panic", 500, 88, false}},
		{"GET", "/late", Line{"/late", 200, 4, true}},
		{"GET", "/nowhere", Line{"", 404, 77, false}},
	}, a.Own...) {
		got := send(test.Method, test.Path, "")
		if line := log.Line(t); line != test.Line {
			t.Errorf("%s: the log says %+v, want %+v", test.Path, line, test.Line)
		}
		if got.Err == nil && len(got.Body) != test.Bytes {
			t.Errorf("%s: the client gets %d bytes, the log says %d: %s", test.Path, len(got.Body), test.Bytes, got.Body)
		}
		if (got.Err != nil) != test.Aborted {
			t.Errorf("%s: the client gets the error %v", test.Path, got.Err)
		}
	}
}

// Each middleware of the repository works, and what it puts into the context arrives. What
// it refuses does not reach the handler.
func testEachMiddleware(t *testing.T, a Adapter) {
	auth, err := bearer.New("pets", func(_ context.Context, token string) (string, error) {
		if token != "ann" {
			return "", bearer.ErrInvalid
		}
		return token, nil
	}, bearer.Options{Errors: Errors})
	testcheck.NoError(t, err)
	noon := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	old := deprecation.MustNew(deprecation.Options{Since: noon, Successor: "/v2", Errors: Errors})
	removed := deprecation.MustNew(deprecation.Options{Since: noon.AddDate(-2, 0, 0), Sunset: noon.AddDate(-1, 0, 0), Successor: "/v2", Errors: Errors})
	source := clientip.FromRemoteAddr()
	calls := 0
	pets := func(w http.ResponseWriter, r *http.Request) {
		calls++
		user, _ := bearer.FromContext[string](r.Context())
		body, err := io.ReadAll(r.Body)
		if err != nil {
			Errors.Respond(w, r, err)
			return
		}
		_, _ = fmt.Fprint(w, user, " ", string(body), " ", r.PathValue("id"), " ",
			middleware.RequestIDFrom(r.Context()) == w.Header().Get("X-Request-Id"), " ", source.Addr(r).IsLoopback())
	}
	stack := Wrap{middleware.RequestID, middleware.SecurityHeaders, auth.Identify, Limiter(t, limit.Options{}), auth.Require,
		middleware.BodyLimit(4, Errors)}
	routes := map[string]http.HandlerFunc{"POST /pets/:id": pets}
	send := Serve(t, a.New([]Wrap{stack, {old.Enforce}}, routes))
	got := send("POST", "/pets/17", "body")
	if got.Status != 200 || got.Body != "ann body 17 true true" || got.Remaining() != "2" {
		t.Errorf("got %d %q with %s left", got.Status, got.Body, got.Remaining())
	}
	for _, field := range []string{"X-Request-Id", "X-Content-Type-Options", "Deprecation", "Link"} {
		if len(got.Header[field]) != 1 {
			t.Errorf("the response has %d lines of %s, want 1", len(got.Header[field]), field)
		}
	}
	if got := send("POST", "/pets/17", "bodies"); got.Status != 413 || got.Code() != "body_too_large" {
		t.Errorf("a long body: %d %s", got.Status, got.Body)
	}
	calls = 0
	got = Serve(t, a.New([]Wrap{stack, {removed.Enforce}}, routes))("POST", "/pets/17", "")
	if got.Status != 410 || got.Code() != "operation_removed" || got.Remaining() != "0" || calls > 0 {
		t.Errorf("after the sunset: %d %s with %s left, and %d calls of the handler", got.Status, got.Code(), got.Remaining(), calls)
	}
}
