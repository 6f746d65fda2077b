package limit_test

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A settled request costs what Settle says, in all windows, even beyond the limit. The
// last call counts.
func TestSettleARequest(t *testing.T) {
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	for name, units := range map[string][]int64{
		"less": {7}, "nothing": {0}, "the same": {40}, "more": {63}, "beyond the limit": {250}, "the largest": {fixedwindow.MaxUnits + 9},
		"twice the same": {63, 63}, "down from the largest": {fixedwindow.MaxUnits + 9, fixedwindow.MaxUnits - 1000}, "up and down": {63, 20, 35}, "down from beyond the limit": {1234, 5}, "all back": {250, 0}, "again from nothing": {0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(now, 0)
			l := newEngine(t, &at)
			res := reserve(t, l, caller, limit.Options{}, nil)
			wantUsed(t, l, "reserved", [2]int64{40, 40})
			for _, n := range units {
				settle(t, res, n)
				n = min(n, fixedwindow.MaxUnits)
				wantUsed(t, l, "settled", [2]int64{n, n})
			}
			if d := res.Decision(); d.Cost != 40 || d.States[0].Remaining != 60 || res.Caller().Subject != caller.Subject || res.Caller().Plan != caller.Plan {
				t.Errorf("the reservation is for %v, %+v; want the decision as it was made", res.Caller(), d)
			}
		})
	}
}

// Units of a smooth quota that have come back by themselves are not given back: those that
// the request still costs come back first.
func TestSettleUnderASmoothQuota(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	plan := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(3600).Smooth(50))
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{}, nil)
	settle(t, res, 400)
	at = at.Add(100 * time.Second) // the 40 of the request alone have come back
	settle(t, res, 120)
	if d, err := l.Peek(t.Context(), "a", plan); err != nil || d.Remaining() != 30 {
		t.Errorf("%d of 50 are left, with error %v, want 30: of 120 units, 100 have come back", d.Remaining(), err)
	}
	at = at.Add(500 * time.Second) // so have all that were ever added
	if _, err := l.Take(t.Context(), "a", plan, 50); err != nil {
		t.Fatal(err)
	}
	settle(t, res, 0)
	if d, err := l.Peek(t.Context(), "a", plan); err != nil || d.Remaining() != 0 {
		t.Errorf("%d of 50 are left, with error %v, want 0: the units of a later request are its own", d.Remaining(), err)
	}
}

// A request that was settled beyond the limit leaves the next one limited, and is no
// strike.
func TestSettleBeyondTheLimit(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{}, nil)
	settle(t, res, 250)
	d, err := l.Peek(t.Context(), "a", tokens)
	if err != nil || d.Outcome != ratelimit.Limited || d.Remaining() != 0 || d.StrikesLeft != tokens.Penalty().Strikes {
		t.Errorf("the next request would be %v with %d units and %d strikes left (%v), want limited with 0 and all %d",
			d.Outcome, d.Remaining(), d.StrikesLeft, err, tokens.Penalty().Strikes)
	}
}

// Units count in the windows in which the request was charged, as far as they are open.
func TestSettleAfterTheResponse(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	first := reserve(t, l, caller, limit.Options{}, nil)
	second := reserve(t, l, caller, limit.Options{}, nil)
	at = at.Add(time.Minute)
	if _, err := l.Take(t.Context(), "a", tokens, 1); err != nil {
		t.Fatal(err)
	}
	wantUsed(t, l, "a minute later", [2]int64{1, 81})
	settle(t, first, 90)
	wantUsed(t, l, "settled up", [2]int64{1, 131})
	settle(t, second, 10)
	wantUsed(t, l, "settled down", [2]int64{1, 101})
	at = at.Add(24 * time.Hour)
	settle(t, first, 0)
	settle(t, second, 500)
	wantUsed(t, l, "a day later", [2]int64{0, 0})
}

// A client that disconnects does not avoid the charge.
func TestSettleAfterTheContextEnded(t *testing.T) {
	at := time.Unix(now, 0)
	l := &flaky{Limiter: newEngine(t, &at)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, units := range []int64{50, 3} {
		res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{}, nil)
		if err := res.Settle(ctx, units); err != nil || l.during != nil {
			t.Errorf("Settle(%d) with a context that ended: %v, and the engine's has the error %v; want neither", units, err, l.during)
		}
	}
	wantUsed(t, l.Limiter, "settled", [2]int64{53, 53})
}

// In shadow mode an admitted request is charged, and settled.
func TestSettleInShadowMode(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{Shadow: true}, nil)
	settle(t, res, 250)
	wantUsed(t, l, "settled", [2]int64{250, 250})
}

// A request that its handler has settled is not given back, however it ends. It can be
// settled after it was refunded.
func TestSettleAndRefund(t *testing.T) {
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	never := func(*http.Request, int) bool { return false }
	for name, opts := range map[string]limit.Options{"NotServerError": {ChargeIf: limit.NotServerError}, "another ChargeIf": {ChargeIf: never}} {
		at := time.Unix(now, 0)
		l := newEngine(t, &at)
		if _, err := l.Take(t.Context(), "a", tokens, 5); err != nil {
			t.Fatal(err)
		}
		res := reserve(t, l, caller, opts, func(w http.ResponseWriter, _ *limit.Reservation) { w.WriteHeader(500) })
		wantUsed(t, l, name+": given back", [2]int64{5, 5})
		settle(t, res, 12)
		wantUsed(t, l, name+": settled after that", [2]int64{17, 17})
		reserve(t, l, caller, opts, func(w http.ResponseWriter, res *limit.Reservation) {
			settle(t, res, 50)
			w.WriteHeader(500)
		})
		wantUsed(t, l, name+": settled before the end", [2]int64{67, 67})
	}
}

// Concurrent calls about one request leave it at the units of one of them.
func TestSettleConcurrently(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{}, nil)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { settle(t, res, int64(i%2)*90) })
	}
	wg.Wait()
	if got := used(t, l, "a"); got != [2]int64{0, 0} && got != [2]int64{90, 90} {
		t.Errorf("used %v, want 0 or 90", got)
	}
}

// Units beyond what a subject can owe are dropped. The bucket does not remember them: if the
// request is then settled lower, up to Limit units are given back, the dropped ones too.
func TestSettleBeyondWhatCanBeOwed(t *testing.T) {
	at := time.Unix(now, 0)
	l := newEngine(t, &at)
	plan := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(100).Smooth(100))
	if _, err := l.Take(t.Context(), "a", plan, 30); err != nil {
		t.Fatal(err)
	}
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{}, nil)
	for _, test := range []struct{ units, left int64 }{{60, 10}, {40, 30}, {120, 0}, {40, 60}} {
		settle(t, res, test.units)
		if d, err := l.Peek(t.Context(), "a", plan); err != nil || d.Remaining() != test.left {
			t.Errorf("settled at %d: %d of 100 are left, with error %v, want %d", test.units, d.Remaining(), err, test.left)
		}
	}
}

// An adjustment is what an Adjuster was asked for.
type adjustment struct {
	subject        string
	time, from, to int64
	id             string
}

// A lossy engine makes each adjustment once, and loses the answers of the first ones, or
// the calls themselves.
type lossy struct {
	*memory.Limiter
	answers, calls int // to lose
	asked          []adjustment
	made           map[string]bool
}

func (l *lossy) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	l.asked = append(l.asked, adjustment{subject, d.Time, d.Cost, units, id})
	if l.calls--; l.calls >= 0 {
		return ratelimit.ErrUnavailable
	}
	if !l.made[id] {
		if err := l.Limiter.Adjust(ctx, subject, d, units, id); err != nil {
			return err
		}
		l.made[id] = true
	}
	if l.answers--; l.answers >= 0 {
		return ratelimit.ErrUnavailable
	}
	return nil
}

// If an answer was lost, the same adjustment is made again before the next one. It counts
// once, whether the engine had made it or not.
func TestSettleRepeatsWhatMayBeLost(t *testing.T) {
	for name, l := range map[string]*lossy{"two answers": {answers: 2}, "two calls": {calls: 2}} {
		at := time.Unix(now, 0)
		l.Limiter, l.made = newEngine(t, &at), map[string]bool{}
		res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{}, nil)
		for _, units := range []int64{70, 3} {
			if err := res.Settle(t.Context(), units); !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Fatalf("%s are lost: Settle(%d): got error %v, want one that wraps ErrUnavailable", name, units, err)
			}
		}
		settle(t, res, 50)
		wantUsed(t, l.Limiter, name+" are lost", [2]int64{50, 50})
		if len(l.asked) != 4 {
			t.Fatalf("%s are lost: asked for %+v, want one adjustment three times and another one", name, l.asked)
		}
		first, last := l.asked[0], l.asked[3]
		if l.asked[1] != first || l.asked[2] != first || first.id == "" || last.id == "" || last.id == first.id {
			t.Errorf("%s are lost: asked for %+v, want the first adjustment three times, and another id for the last", name, l.asked)
		}
		if first.from != 40 || first.to != 70 || last.from != 70 || last.to != 50 {
			t.Errorf("%s are lost: asked for %+v, want from 40 to 70 units and then to 50", name, l.asked)
		}
	}
}

// Each Settle is one call, also if it gives back far more than a limit.
func TestSettleIsOneCall(t *testing.T) {
	for name, plan := range map[string]*ratelimit.Plan{
		"a window": tokens, "a small burst": ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(100_000).Smooth(40)),
	} {
		at := time.Unix(now, 0)
		l := &flaky{Limiter: newEngine(t, &at)}
		res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: plan}, limit.Options{}, nil)
		for i, units := range []int64{100_000, 30} {
			settle(t, res, units)
			if l.changes != i+1 {
				t.Errorf("%s: %d calls after %d were settled, want one for each", name, l.changes, i+1)
			}
		}
		if d, err := l.Peek(t.Context(), "a", plan); err != nil || d.Remaining() != cmp.Or(engine.Of(plan).Quota(0).Burst(), engine.Of(plan).Quota(0).Limit)-30 {
			t.Errorf("%s: %d are left, with error %v, want all but 30", name, d.Remaining(), err)
		}
	}
}
