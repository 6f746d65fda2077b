package middleware_test

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// logLines serves r with h inside AccessLog and the other middlewares, and returns
// the lines without their time, level and message.
func logLines(t *testing.T, h http.Handler, r *http.Request, outside, inside []middleware.Middleware) []map[string]any {
	t.Helper()
	var log bytes.Buffer
	accessLog := middleware.AccessLog(slog.New(slog.NewJSONHandler(&log, nil)))
	all := slices.Concat(outside, []middleware.Middleware{accessLog}, inside)
	func() {
		defer func() { _ = recover() }()
		middleware.Chain(h, all...).ServeHTTP(httptest.NewRecorder(), r)
	}()
	var lines []map[string]any
	for text := range strings.Lines(log.String()) {
		var line map[string]any
		if err := json.Unmarshal([]byte(text), &line); err != nil {
			t.Fatalf("the log has %q: %v", text, err)
		}
		if line["level"] != "INFO" || line["msg"] != "request" {
			t.Errorf("the line has level %v and message %v, want INFO and request", line["level"], line["msg"])
		}
		for key := range line {
			if n := strings.Count(text, `"`+key+`":`); n != 1 {
				t.Errorf("the line has the key %s %d times: %s", key, n, text)
			}
		}
		delete(line, "time")
		delete(line, "level")
		delete(line, "msg")
		lines = append(lines, line)
	}
	return lines
}

func TestAccessLog(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /pets/{id}", func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(1204567 * time.Nanosecond)
		_, _ = io.WriteString(w, "Rex")
	})
	mux.HandleFunc("POST /pets", func(w http.ResponseWriter, r *http.Request) {
		middleware.SetLogAttrs(r.Context(), slog.String("outcome", "limited"), slog.Int("remaining", 7))
		middleware.SetLogAttrs(r.Context(), slog.String("outcome", "allowed"))
		w.WriteHeader(http.StatusCreated)
	})
	mux.HandleFunc("GET /empty", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("GET /early", func(w http.ResponseWriter, r *http.Request) { panic("boom") })
	mux.HandleFunc("GET /late", func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("Re"))
		panic(http.ErrAbortHandler)
	})
	mux.HandleFunc("GET /named", func(w http.ResponseWriter, r *http.Request) {
		middleware.SetLogAttrs(r.Context(), slog.String("route", "/n"))
	})
	type line = map[string]any
	for _, tt := range []struct {
		name, method, path string
		want               line
	}{
		{"a body", "GET", "/pets/7?key=secret", line{"method": "GET", "route": "GET /pets/{id}", "status": 200., "bytes": 3., "duration_ms": 1.204}},
		{"HEAD", "HEAD", "/pets/7", line{"method": "HEAD", "route": "GET /pets/{id}", "status": 200., "bytes": 0., "duration_ms": 1.204}},
		{
			"what the handler set, the last of each key", "POST", "/pets",
			line{"method": "POST", "route": "POST /pets", "status": 201., "bytes": 0., "duration_ms": 0., "outcome": "allowed", "remaining": 7.},
		},
		{"a handler that writes nothing", "GET", "/empty", line{"method": "GET", "route": "GET /empty", "status": 200., "bytes": 0., "duration_ms": 0.}},
		{"no route", "GET", "/nothing", line{"method": "GET", "route": "", "status": 404., "bytes": 19., "duration_ms": 0.}},
		{"QUERY", "QUERY", "/nothing", line{"method": "QUERY", "route": "", "status": 404., "bytes": 19., "duration_ms": 0.}},
		{"an invented method", "FORGED", "/nothing", line{"method": "other", "route": "", "status": 404., "bytes": 19., "duration_ms": 0.}},
		{"a panic before the response", "GET", "/early", line{"method": "GET", "route": "GET /early", "status": 0., "bytes": 0., "duration_ms": 0., "aborted": true}},
		{"a panic in the response", "GET", "/late", line{"method": "GET", "route": "GET /late", "status": 200., "bytes": 2., "duration_ms": 0., "aborted": true}},
		{"a route that the service sets", "GET", "/named", line{"method": "GET", "route": "/n", "status": 200., "bytes": 0., "duration_ms": 0.}},
	} {
		synctest.Test(t, func(t *testing.T) {
			got := logLines(t, mux, httptest.NewRequest(tt.method, tt.path, nil), nil, nil)
			if diff := cmp.Diff([]line{tt.want}, got); diff != "" {
				t.Errorf("%s: lines (-want +got):\n%s", tt.name, diff)
			}
		})
	}
}

// A middleware that copies the request keeps neither the route nor the attributes
// from the line.
func TestAccessLogAroundCopies(t *testing.T) {
	auth := testcheck.Must(bearer.New("pets", func(context.Context, string) (string, error) { return "ann", nil }, bearer.Options{}))
	mux := http.NewServeMux()
	mux.HandleFunc("POST /pets", func(w http.ResponseWriter, r *http.Request) {
		middleware.SetLogAttrs(r.Context(), slog.String("outcome", "allowed"))
		if middleware.RequestIDFrom(r.Context()) != "abc" {
			t.Errorf("the ID is %q inside, want abc", middleware.RequestIDFrom(r.Context()))
		}
	})
	copying := []middleware.Middleware{auth.Identify, middleware.BodyLimit(100, nil)}
	for name, order := range map[string]struct{ outside, inside []middleware.Middleware }{
		"RequestID outside": {[]middleware.Middleware{middleware.RequestID}, copying},
		"RequestID inside":  {nil, append([]middleware.Middleware{middleware.RequestID}, copying...)},
		"RequestID twice":   {[]middleware.Middleware{middleware.RequestID}, []middleware.Middleware{middleware.RequestID}},
	} {
		r := httptest.NewRequest("POST", "/pets", strings.NewReader("Rex"))
		r.Header.Set("X-Request-Id", "abc")
		got := logLines(t, mux, r, order.outside, order.inside)
		if len(got) != 1 || got[0]["request_id"] != "abc" || got[0]["route"] != "POST /pets" || got[0]["outcome"] != "allowed" {
			t.Errorf("%s: the lines are %v, want one with the ID, the route and the outcome", name, got)
		}
		if r.Pattern != "POST /pets" {
			t.Errorf("%s: the outer request has the route %q, want POST /pets", name, r.Pattern)
		}
	}
}

// A request that its client cancelled is told apart from others: its status is 499 unless
// the handler sent one, since a failure of the service must not be hidden.
func TestAccessLogOfAbandonedRequest(t *testing.T) {
	gone, disconnect := context.WithCancel(t.Context())
	disconnect()
	late, end := context.WithDeadline(t.Context(), time.Now())
	defer end()
	cancelled := new(apierror.Responder).Handle(func(_ http.ResponseWriter, r *http.Request) error { return r.Context().Err() })
	for _, tt := range []struct {
		name      string
		h         http.Handler
		ctx       context.Context
		status    float64
		abandoned any
	}{
		{"an answer", ok, t.Context(), 200, nil},
		{"an answer that nobody reads", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(200) }), gone, 200, true},
		{"nothing", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), gone, 499, true},
		{"nothing at the deadline of the service", http.HandlerFunc(func(http.ResponseWriter, *http.Request) {}), late, 200, nil},
		{"the error of the context", cancelled, gone, 499, true},
		{"a failure", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(500) }), gone, 500, true},
		{"a panic", http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("x") }), gone, 0, true},
	} {
		got := logLines(t, tt.h, httptest.NewRequestWithContext(tt.ctx, "GET", "/", nil), nil, nil)
		if len(got) != 1 || got[0]["status"] != tt.status || got[0]["abandoned"] != tt.abandoned {
			t.Errorf("%s: the lines are %v, want one with status %v and abandoned %v", tt.name, got, tt.status, tt.abandoned)
		}
	}
}

func TestSetLogAttrs(t *testing.T) {
	middleware.SetLogAttrs(t.Context(), slog.Int("n", 1)) // without a line: nothing happens
	middleware.RequestID(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		middleware.SetLogAttrs(r.Context(), slog.Int("n", 1))
	})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))

	h := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var wg sync.WaitGroup
		for i := range 20 {
			wg.Go(func() { middleware.SetLogAttrs(r.Context(), slog.Int(string(rune('a'+i)), i)) })
		}
		wg.Wait()
	})
	got := logLines(t, h, httptest.NewRequest("GET", "/", nil), nil, nil)
	for i := range 20 {
		if key := string(rune('a' + i)); len(got) != 1 || got[0][key] != float64(i) {
			t.Fatalf("the lines are %v, want one with %s=%d", got, key, i)
		}
	}
}

func TestTrackResponse(t *testing.T) {
	w := httptest.NewRecorder()
	tracked := middleware.TrackResponse(w)
	if middleware.TrackResponse(tracked) != tracked {
		t.Error("a tracked response is tracked again")
	}
	if got := tracked.Status(); got != 0 {
		t.Errorf("status %d before the response has begun, want 0", got)
	}
	tracked.WriteHeader(http.StatusTeapot)
	_, _ = tracked.Write([]byte("short and stout"))
	if tracked.Status() != http.StatusTeapot || tracked.Bytes() != 15 || w.Body.String() != "short and stout" {
		t.Errorf("status %d and %d bytes, want 418 and 15, around the ResponseWriter", tracked.Status(), tracked.Bytes())
	}
}

// Without a logger for level Info, AccessLog costs nothing.
func TestAccessLogTurnedOff(t *testing.T) {
	h := middleware.AccessLog(slog.New(slog.NewTextHandler(io.Discard, &slog.HandlerOptions{Level: slog.LevelWarn})))(ok)
	w, r := &discard{header: make(http.Header)}, httptest.NewRequest("GET", "/", nil)
	if got := testing.AllocsPerRun(100, func() { h.ServeHTTP(w, r) }); got != 0 {
		t.Errorf("a request costs %v allocations, want none", got)
	}
}
