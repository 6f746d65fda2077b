package limit_test

import (
	"errors"
	"net/http"
	"strconv"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
)

func TestShadow(t *testing.T) {
	at := time.Unix(now, 0)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1))
	var outcomes []ratelimit.Outcome
	h := handler(t, newEngine(t, &at), ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{
		Shadow: true,
		Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
			outcomes = append(outcomes, d.Outcome)
		},
	}, ok)
	for range 2 {
		w := get(h)
		expect(t, w, 200, "", "0")
		if got, there := w.Header()["Retry-After"]; there {
			t.Errorf("a request that went on has Retry-After %q", got)
		}
	}
	if len(outcomes) != 2 || outcomes[0] != ratelimit.Allowed || outcomes[1] != ratelimit.Limited {
		t.Errorf("observed %v, want allowed and limited", outcomes)
	}
}

// A plan that is tried beside the one in force must not speak for it, on
// whichever side of it the shadow stands.
func TestShadowLeavesTheFieldsOfTheLimitInForce(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	inForce := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))}
	trial := ratelimit.Caller{Subject: "trial:a", Plan: ratelimit.MustPlan("q", ratelimit.Penalty{}, ratelimit.PerHour(3))}
	headers := limit.XRateLimit | limit.DraftRateLimit
	enforce := func(next http.Handler) http.Handler {
		return handler(t, l, inForce, limit.Options{Headers: headers}, next.ServeHTTP)
	}
	shadow := func(next http.Handler) http.Handler {
		return handler(t, l, trial, limit.Options{Headers: limit.XRateLimit | limit.DraftRateLimit, Shadow: true}, next.ServeHTTP)
	}
	for i, h := range []http.Handler{enforce(shadow(http.HandlerFunc(ok))), shadow(enforce(http.HandlerFunc(ok)))} {
		w := get(h)
		expect(t, w, 200, "", strconv.Itoa(9-i))
		if got := w.Header().Get("RateLimit-Policy"); got != `"day";q=10;w=86400` {
			t.Errorf("RateLimit-Policy is %q, want that of the plan in force", got)
		}
	}
	headers = limit.DraftRateLimit
	if h := get(enforce(shadow(http.HandlerFunc(ok)))).Header(); h.Get("RateLimit-Policy") != `"day";q=10;w=86400` || h.Get("X-RateLimit-Limit") != "" {
		t.Errorf("with RateLimit alone the fields are %v, want those of the plan in force", h)
	}
}

// Shadow mode passes on what the engine cannot decide, and neither counts strikes
// nor bans.
func TestShadowIsHarmless(t *testing.T) {
	at := time.Unix(now, 0)
	p := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	caller := ratelimit.Caller{Subject: "a", Plan: ratelimit.MustPlan("p", p, ratelimit.PerMinute(1))}
	l := newEngine(t, &at)
	h := handler(t, l, caller, limit.Options{
		Shadow: true,
		Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
			if d.Struck {
				t.Errorf("in shadow mode a request is a strike")
			}
		},
	}, ok)
	for range 20 {
		expect(t, get(h), 200, "", "0")
	}
	if bans, err := l.Bans(t.Context()); err != nil || len(bans) != 0 {
		t.Errorf("shadow mode started the bans %v (%v)", bans, err)
	}
	d, err := l.Peek(t.Context(), caller.Subject, caller.Plan)
	if err != nil || d.StrikesLeft != 1 {
		t.Errorf("after shadow mode %d strikes are left (%v), want all 1", d.StrikesLeft, err)
	}

	down := errors.Join(ratelimit.ErrUnavailable, errors.New("connection refused"))
	var observed error
	h = handler(t, broken{down}, caller, limit.Options{Shadow: true,
		Observe: func(_ *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, err error) { observed = err }}, ok)
	w := get(h)
	expect(t, w, 200, "", "1")
	if w.Header().Get("Retry-After") != "" || !errors.Is(observed, ratelimit.ErrUnavailable) {
		t.Errorf("engine down: fields %v, observed %v", w.Header(), observed)
	}
}

// A subject that refuses as one of Also gets no strike in shadow mode either.
func TestAlsoGivesNoStrikeInShadowMode(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	use(t, l, ratelimit.Charge{Subject: "user:ann", Plan: annsPlan, Cost: 3})
	bob := ratelimit.Caller{Subject: "user:bob", Plan: teamPlan, Also: []ratelimit.Charge{{Subject: "user:ann", Plan: annsPlan}}}
	get(handler(t, l, bob, limit.Options{Shadow: true}, ok))
	if d, err := l.Peek(t.Context(), "user:ann", annsPlan); err != nil || d.StrikesLeft != 1 {
		t.Errorf("%d strikes are left, with error %v, want all", d.StrikesLeft, err)
	}
}
