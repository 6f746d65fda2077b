package limit_test

import (
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// The comment of New says what two middlewares do, one in the other: the client sees the
// fields of the inner one, and the outer one charges what the inner one denies, unless
// ChargeIf says otherwise.
func TestOneMiddlewareInAnother(t *testing.T) {
	around := func(l ratelimit.Limiter, subject string, plan *ratelimit.Plan, o limit.Options, next http.Handler) http.Handler {
		limited, err := limit.New(l, func(*http.Request) (ratelimit.Caller, error) {
			return ratelimit.Caller{Subject: subject, Plan: plan}, nil
		}, o)
		if err != nil {
			t.Fatal(err)
		}
		return limited(next)
	}
	service := ratelimit.MustPlan("service", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	group := ratelimit.MustPlan("group", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	not429 := func(_ *http.Request, status int) bool { return status != http.StatusTooManyRequests }
	for _, test := range []struct {
		name string
		o    limit.Options
		left int64 // of the service's quota, after one admitted and two denied requests
	}{
		{"by default", limit.Options{}, 7},
		{"with ChargeIf", limit.Options{ChargeIf: not429}, 9},
	} {
		engine, err := memory.New(memory.Options{Now: func() time.Time { return time.Unix(1772366400, 0) }})
		if err != nil {
			t.Fatal(err)
		}
		h := around(engine, "service:ann", service, test.o, around(engine, "group:ann", group, limit.Options{}, http.NotFoundHandler()))
		for i, want := range []int{404, 429, 429} {
			w := httptest.NewRecorder()
			h.ServeHTTP(w, httptest.NewRequest("GET", "/", nil))
			if fields := w.Header()["X-Ratelimit-Limit"]; w.Code != want || len(fields) != 1 || fields[0] != "1" {
				t.Errorf("%s, request %d: %d with X-RateLimit-Limit %q, want %d and the limit of the group", test.name, i, w.Code, fields, want)
			}
		}
		d, err := engine.Peek(t.Context(), "service:ann", service)
		if err != nil || d.Remaining() != test.left {
			t.Errorf("%s: the service has %d left (%v), want %d", test.name, d.Remaining(), err, test.left)
		}
	}
}
