package inflight_test

import (
	"errors"
	"fmt"
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

// Options.Deny gets each request that the limit refuses, after Retry-After is set, and
// writes all of the response. Everything else is answered as without it.
func TestDeny(t *testing.T) {
	opts := inflight.Options{
		Deny: func(w http.ResponseWriter, r *http.Request, c inflight.Caller, d inflight.Decision) {
			w.WriteHeader(http.StatusTeapot)
			fmt.Fprintf(w, "%s %s %+v", r.Header.Get("Subject"), c.Subject, d)
		},
	}
	perSubject := newLimiter(t, 1, opts)
	process, err := inflight.NewProcess(1, opts)
	if err != nil {
		t.Fatal(err)
	}
	failing, err := inflight.New(1, func(*http.Request) (inflight.Caller, error) {
		return inflight.Caller{}, errors.New("the database is away")
	}, opts)
	if err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct {
		name    string
		limiter *inflight.Limiter
		want    string // of a second request while one runs
	}{
		{"a subject", perSubject, "418 ann ann {Admitted:false Limit:1 Running:1 Waited:0s}"},
		{"the process", process, "418 ann  {Admitted:false Limit:1 Running:1 Waited:0s}"},
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
	if w := serve(failing.Middleware(http.NotFoundHandler()), request("ann")); w.Code != 500 || code(t, w.Body.Bytes()) != "internal" {
		t.Errorf("identify fails: %d %s, want 500 internal of Options.Errors", w.Code, w.Body)
	}
}
