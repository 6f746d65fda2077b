package inflight_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
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

func TestRefusal(t *testing.T) {
	one, hundred := newLimiter(1, inflight.Options{}), newLimiter(100, inflight.Options{})
	process := testcheck.Must(inflight.NewProcess(2, inflight.Options{}))
	for _, test := range []struct {
		limiter *inflight.Limiter
		limit   int
		accept  string
		want    string
	}{
		{one, 1, "", `{"code":"too_many_concurrent_requests","message":"Only 1 of your requests may be in progress at a time. ` +
			`Wait for it to finish before you send the next.","status":429}`},
		{hundred, 100, "", "Only 100 of your requests may be in progress at a time. Wait for one to finish before you send the next."},
		{process, 2, "", `{"code":"overloaded",`},
		{process, 2, "application/problem+json", "#temporary-reduced-capacity"},
	} {
		synctest.Test(t, func(t *testing.T) {
			room := newRoom()
			defer close(room.leave)
			h := test.limiter.Middleware(room)
			for range test.limit {
				go serve(h, request("ann"))
			}
			synctest.Wait()
			r := request("ann")
			r.Header.Set("Accept", test.accept)
			if w := serve(h, r); !strings.Contains(w.Body.String(), test.want) || w.Header().Get("Retry-After") != "1" {
				t.Errorf("Retry-After %q, %s; want 1 and %s", w.Header().Get("Retry-After"), w.Body, test.want)
			}
		})
	}
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
			l := testcheck.Must(inflight.New(1, func(*http.Request) (inflight.Caller, error) { return test.caller, test.err }, inflight.Options{
				Observe: func(*http.Request, inflight.Caller, inflight.Decision) { t.Error("observed") },
				Errors:  writer,
			}))
			w := serve(l.Middleware(http.NotFoundHandler()), request(""))
			if got := w.Body.String(); w.Code != test.status || got != test.code+" map[]" {
				t.Errorf("%d %q, want %d %q", w.Code, got, test.status, test.code)
			}
			want(t, l, 0, 0)
		})
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
			want(t, observed, 0, 0)
			if inside.Running != 1 || inside.Admitted != 2 {
				t.Errorf("in the handler of the second request: %+v, want 1 running, 2 admitted", inside)
			}
			want(t, l, 0, 0)
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
	return testcheck.Must(inflight.New(limit, bySubject, opts))
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

// want compares what runs. Nothing waits or was refused.
func want(t *testing.T, l *inflight.Limiter, running, subjects int) {
	t.Helper()
	got := l.Stats()
	got.Admitted = 0
	if want := (inflight.Stats{Running: running, Subjects: subjects}); got != want {
		t.Errorf("Stats: %+v, want %+v", got, want)
	}
}
