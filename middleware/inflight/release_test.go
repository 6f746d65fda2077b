package inflight_test

import (
	"net/http"
	"runtime"
	"testing"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

// However a handler ends, its request no longer counts.
func TestRelease(t *testing.T) {
	for name, end := range map[string]func(){
		"returns":                func() {},
		"panics":                 func() { panic("broken") },
		"aborts":                 func() { panic(http.ErrAbortHandler) },
		"panics with nil":        func() { panic(nil) },
		"ends its own goroutine": runtime.Goexit,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLimiter(t, 1, inflight.Options{})
			inside := inflight.Stats{}
			h := l.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
				inside = l.Stats()
				end()
			}))
			for range 2 {
				ended(func() { serve(h, request("ann")) })
			}
			if inside.Running != 1 || inside.Admitted != 2 {
				t.Errorf("in the handler of the second request: %+v, want 1 running, 2 admitted", inside)
			}
			want(t, l, 0, 0, 0, 0)
		})
	}
}

// A panic of Observe is no exception.
func TestReleaseAfterObservePanics(t *testing.T) {
	l := newLimiter(t, 1, inflight.Options{
		Observe: func(*http.Request, inflight.Caller, inflight.Decision) { panic("broken") },
	})
	ended(func() { serve(l.Middleware(http.NotFoundHandler()), request("ann")) })
	want(t, l, 0, 0, 0, 0)
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
