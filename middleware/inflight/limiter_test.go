package inflight_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/inflight"
)

func TestNewRefuses(t *testing.T) {
	for _, test := range []struct {
		limit int
		opts  inflight.Options
		want  string
	}{
		{0, inflight.Options{}, "the limit must be 1 request or more, got 0"},
		{-1, inflight.Options{}, "the limit must be 1 request or more, got -1"},
		{1, inflight.Options{Queue: -1}, "Options.Queue must be 0 or more requests, got -1"},
		{1, inflight.Options{Wait: -1}, "Options.Wait must be 0s or more, got -1ns"},
		{1, inflight.Options{Queue: 3}, "Options.Queue is 3, so Options.Wait must be above 0s"},
		{1, inflight.Options{Wait: time.Second}, "Options.Wait is 1s, so Options.Queue must be 1 or more"},
	} {
		_, err := inflight.New(test.limit, bySubject, test.opts)
		_, processErr := inflight.NewProcess(test.limit, test.opts)
		for _, err := range []error{err, processErr} {
			if err == nil || err.Error() != "inflight: "+test.want {
				t.Errorf("limit %d, %+v: error %v, want %q", test.limit, test.opts, err, test.want)
			}
		}
	}
	if _, err := inflight.New(1, nil, inflight.Options{}); err == nil {
		t.Error("New without identify returned no error")
	}
}

func TestSubjectsAreLimitedEach(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, room := newLimiter(2, inflight.Options{}), newRoom()
		h := l.Middleware(room)
		for range 2 {
			go serve(h, request("ann"))
			go serve(h, request("bob"))
		}
		synctest.Wait()
		want(t, l, 4, 0, 2, 0)

		w := serve(h, request("ann"))
		if got := code(t, w.Body.Bytes()); w.Code != 429 || got != "too_many_concurrent_requests" {
			t.Errorf("a third request at once: %d %q, want 429 too_many_concurrent_requests", w.Code, got)
		}
		if got := w.Header().Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After %q, want 1", got)
		}
		want(t, l, 4, 0, 2, 1)

		for range 4 {
			room.leave <- struct{}{}
		}
		synctest.Wait()
		want(t, l, 0, 0, 0, 1)
		if got := l.Stats().Admitted; got != 4 {
			t.Errorf("%d admitted, want 4", got)
		}
		go func() { room.leave <- struct{}{} }()
		if w := serve(h, request("ann")); w.Code != 200 {
			t.Errorf("after all have finished: %d, want 200", w.Code)
		}
	})
}

func TestProcessIsLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := must(inflight.NewProcess(2, inflight.Options{}))
		room := newRoom()
		h, other := l.Middleware(room), l.Middleware(room)
		go serve(h, request("ann"))
		go serve(other, request("bob"))
		synctest.Wait()
		want(t, l, 2, 0, 1, 0)

		r := request("kim")
		r.Header.Set("Accept", "application/problem+json")
		w := serve(h, r)
		if got := code(t, w.Body.Bytes()); w.Code != 503 || got != "overloaded" {
			t.Errorf("a third request at once: %d %q, want 503 overloaded", w.Code, got)
		}
		if !strings.Contains(w.Body.String(), "#temporary-reduced-capacity") {
			t.Errorf("problem details without the type of the draft: %s", w.Body)
		}
		if got := w.Header().Get("Retry-After"); got != "1" {
			t.Errorf("Retry-After %q, want 1", got)
		}
		close(room.leave)
	})
}

func TestMessage(t *testing.T) {
	for limit, message := range map[int]string{
		1:   "Only 1 of your requests may be in progress at a time. Wait for it to finish before you send the next.",
		100: "Only 100 of your requests may be in progress at a time. Wait for one to finish before you send the next.",
	} {
		synctest.Test(t, func(t *testing.T) {
			l, room := newLimiter(limit, inflight.Options{}), newRoom()
			defer close(room.leave)
			for range limit {
				go serve(l.Middleware(room), request("ann"))
			}
			synctest.Wait()
			if w := serve(l.Middleware(room), request("ann")); !strings.Contains(w.Body.String(), message) {
				t.Errorf("limit %d: %s, want %q", limit, w.Body, message)
			}
		})
	}
}

// The limit of a subject is that of its latest request, so that a change of plan takes
// effect at once.
func TestLimitOfCaller(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limit := 0
		identify := func(*http.Request) (inflight.Caller, error) {
			return inflight.Caller{Subject: "ann", Limit: limit}, nil
		}
		l := must(inflight.New(2, identify, inflight.Options{}))
		room := newRoom()
		defer close(room.leave)
		for _, step := range []struct{ limit, running int }{
			{1, 1}, {1, 1}, {0, 2}, {0, 2}, {4, 3}, {3, 3}, {4, 4}, {4, 4}, {1, 4}, {0, 4},
		} {
			limit = step.limit
			go serve(l.Middleware(room), request("ann"))
			synctest.Wait()
			if got := l.Stats().Running; got != step.running {
				t.Fatalf("after a request with Limit %d: %d run, want %d", limit, got, step.running)
			}
		}
		limit = 3
		if w := serve(l.Middleware(room), request("ann")); !strings.Contains(w.Body.String(), "Only 3 of your requests") {
			t.Errorf("a request with Limit 3 is refused with %s, want its limit in the text", w.Body)
		}
	})
}

func TestIdentifyFails(t *testing.T) {
	signIn := apierror.New(http.StatusUnauthorized, "sign_in", "Sign in first.")
	for _, test := range []struct {
		name   string
		caller inflight.Caller
		err    error
		status int
		code   string
	}{
		{"public error", inflight.Caller{}, signIn, 401, "sign_in"},
		{"private error", inflight.Caller{}, errors.New("the database is away"), 500, "internal"},
		{"no subject", inflight.Caller{Limit: 1}, nil, 500, "internal"},
		{"negative limit", inflight.Caller{Subject: "ann", Limit: -1}, nil, 500, "internal"},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := must(inflight.New(1, func(*http.Request) (inflight.Caller, error) { return test.caller, test.err }, inflight.Options{
				Observe: func(*http.Request, inflight.Caller, inflight.Decision) { t.Error("observed") },
			}))
			w := serve(l.Middleware(http.NotFoundHandler()), request(""))
			if got := code(t, w.Body.Bytes()); w.Code != test.status || got != test.code {
				t.Errorf("%d %q, want %d %q", w.Code, got, test.status, test.code)
			}
			want(t, l, 0, 0, 0, 0)
		})
	}
}

func TestObserve(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var seen []inflight.Decision
		room := newRoom()
		l := newLimiter(1, inflight.Options{
			Queue: 1, Wait: time.Second,
			Observe: func(r *http.Request, c inflight.Caller, d inflight.Decision) {
				if c.Subject != "ann" || r.Header.Get("Subject") != "ann" {
					t.Errorf("observed %+v", c)
				}
				seen = append(seen, d)
			},
		})
		h := l.Middleware(room)
		go serve(h, request("ann"))
		synctest.Wait()
		serve(h, request("ann"))
		go serve(h, request("ann"))
		time.Sleep(300 * time.Millisecond)
		room.leave <- struct{}{}
		synctest.Wait()
		close(room.leave)
		for i, want := range []inflight.Decision{
			{Admitted: true, Limit: 1, Running: 1},
			{Admitted: false, Limit: 1, Running: 1, Waited: time.Second},
			{Admitted: true, Limit: 1, Running: 1, Waited: 300 * time.Millisecond},
		} {
			if i >= len(seen) || seen[i] != want {
				t.Errorf("observed %+v, want %+v as number %d", seen, want, i)
			}
		}
	})
}

// Errors writes the answer to each request that the limit refuses, and to one that identify
// returns an error for.
func TestErrors(t *testing.T) {
	opts := inflight.Options{Errors: &apierror.Responder{
		Logger: slog.New(slog.DiscardHandler),
		Write: func(w http.ResponseWriter, r *http.Request, e *apierror.Error) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprint(w, r.Header.Get("Subject"), " ", e.Code, " ", e.Args)
		},
	}}
	perSubject := newLimiter(1, opts)
	process := must(inflight.NewProcess(1, opts))
	failing := must(inflight.New(1, func(*http.Request) (inflight.Caller, error) {
		return inflight.Caller{}, errors.New("the database is away")
	}, opts))
	for _, tt := range []struct {
		name    string
		limiter *inflight.Limiter
		want    string // of a second request while one runs
	}{
		{"a subject", perSubject, "418 ann too_many_concurrent_requests map[limit:1]"},
		{"the process", process, "418 ann overloaded map[]"},
	} {
		inside := func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, "served") }
		first := serve(tt.limiter.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			second := serve(tt.limiter.Middleware(http.HandlerFunc(inside)), request("ann"))
			if got := fmt.Sprint(second.Code, " ", second.Body); got != tt.want {
				t.Errorf("%s, a second request meanwhile: %s, want %s", tt.name, got, tt.want)
			}
			if got := second.Header().Get("Retry-After"); got != "1" {
				t.Errorf("%s: Retry-After is %q, want 1", tt.name, got)
			}
			inside(w, r)
		})), request("ann"))
		if got := fmt.Sprint(first.Code, " ", first.Body); got != "200 served" {
			t.Errorf("%s, the first request: %s, want 200 served", tt.name, got)
		}
	}
	if w := serve(failing.Middleware(http.NotFoundHandler()), request("ann")); fmt.Sprint(w.Code, " ", w.Body) != "418 ann internal map[]" {
		t.Errorf("identify fails: %d %s, want 418 and the code internal", w.Code, w.Body)
	}
}

// However a handler or Observe ends, the request no longer counts.
func TestRelease(t *testing.T) {
	for name, end := range map[string]func(){
		"returns":                func() {},
		"panics":                 func() { panic("broken") },
		"aborts":                 func() { panic(http.ErrAbortHandler) },
		"panics with nil":        func() { panic(nil) },
		"ends its own goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			shared := 0
			enter := func(context.Context, string, int) (func(), error) {
				shared++
				return func() { shared-- }, nil
			}
			l := newLimiter(1, inflight.Options{Shared: enter})
			inside := inflight.Stats{}
			h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				inside = l.Stats()
				end()
			}))
			observed := newLimiter(1, inflight.Options{Shared: enter, Observe: func(*http.Request, inflight.Caller, inflight.Decision) { end() }})
			for range 2 {
				ended(func() { serve(h, request("ann")) })
				ended(func() { serve(observed.Middleware(http.NotFoundHandler()), request("ann")) })
			}
			want(t, observed, 0, 0, 0, 0)
			if inside.Running != 1 || inside.Admitted != 2 {
				t.Errorf("in the handler of the second request: %+v, want 1 running, 2 admitted", inside)
			}
			want(t, l, 0, 0, 0, 0)
			if shared != 0 {
				t.Errorf("%d requests still count in Options.Shared", shared)
			}
		})
	}
}

// ended calls f in a goroutine and waits for its end, whichever it is.
func ended(f func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() { _ = recover() }()
		f()
	}()
	<-done
}

// bySubject counts requests by the header field Subject.
func bySubject(r *http.Request) (inflight.Caller, error) {
	return inflight.Caller{Subject: r.Header.Get("Subject")}, nil
}

func newLimiter(limit int, opts inflight.Options) *inflight.Limiter {
	return must(inflight.New(limit, bySubject, opts))
}

// request returns a request of a subject.
func request(subject string) *http.Request {
	r := httptest.NewRequest(http.MethodGet, "/", nil)
	r.Header.Set("Subject", subject)
	return r
}

// serve has h answer r, and returns the response.
func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// A room is a handler whose requests stay until they are let out.
type room struct {
	entered chan *http.Request // gets each request as it begins
	leave   chan struct{}      // lets one request end
}

func newRoom() room {
	return room{make(chan *http.Request, 100), make(chan struct{})}
}

func (m room) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	m.entered <- r
	<-m.leave
}

// code returns the code of the error in body.
func code(t *testing.T, body []byte) string {
	t.Helper()
	var envelope struct{ Code string }
	if err := json.Unmarshal(body, &envelope); err != nil {
		t.Fatalf("body %q is not the error envelope: %v", body, err)
	}
	return envelope.Code
}

// want compares what runs, waits and was refused.
func want(t *testing.T, l *inflight.Limiter, running, waiting, subjects int, refused uint64) {
	t.Helper()
	got := l.Stats()
	got.Admitted = 0
	if want := (inflight.Stats{Running: running, Waiting: waiting, Subjects: subjects, Refused: refused}); got != want {
		t.Errorf("Stats: %+v, want %+v", got, want)
	}
}

// must returns v. It panics if what a test sets up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
