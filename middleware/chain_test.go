package middleware_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware"
)

func TestChainOrder(t *testing.T) {
	var seen []string
	note := func(name string) middleware.Middleware {
		return func(next http.Handler) http.Handler {
			return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				seen = append(seen, name+" in")
				next.ServeHTTP(w, r)
				seen = append(seen, name+" out")
			})
		}
	}
	h := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { seen = append(seen, "handler") })

	serve(middleware.Chain(h, note("first"), nil, note("second")), httptest.NewRequest("GET", "/", nil))
	want := []string{"first in", "second in", "handler", "second out", "first out"}
	if diff := cmp.Diff(want, seen); diff != "" {
		t.Errorf("the first middleware is the outermost, and a nil one is left out (-want +got):\n%s", diff)
	}

	seen = nil
	serve(middleware.Chain(h), httptest.NewRequest("GET", "/", nil))
	if diff := cmp.Diff([]string{"handler"}, seen); diff != "" {
		t.Errorf("a chain of none is the handler (-want +got):\n%s", diff)
	}
}

func TestRecover(t *testing.T) {
	rs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	h := middleware.Recover(rs)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic("boom") }))
	resp := serve(h, httptest.NewRequest("GET", "/", nil))
	if got := code(t, resp); resp.StatusCode != 500 || got != "internal" {
		t.Errorf("a panic is answered %d %q, want 500 internal", resp.StatusCode, got)
	}

	abort := middleware.Recover(rs)(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }))
	defer func() {
		if got := recover(); got != http.ErrAbortHandler {
			t.Errorf("a handler that aborts: recovered %v, want http.ErrAbortHandler passed on", got)
		}
	}()
	serve(abort, httptest.NewRequest("GET", "/", nil))
}
