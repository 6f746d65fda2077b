package ratelimit_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var tokens = ratelimit.MustPlan("tokens", ratelimit.DefaultPenalty(), ratelimit.PerMinute(100), ratelimit.PerDay(1000))

// A flaky engine fails while down is set. It counts the calls that change usage.
type flaky struct {
	*memory.Limiter
	down    error
	changes int
	during  error // of the context of the last change
}

func (f *flaky) AddUsage(ctx context.Context, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	if f.changes++; f.down != nil {
		return f.down
	}
	f.during = ctx.Err()
	return f.Limiter.AddUsage(ctx, subject, plan, units, at)
}

func (f *flaky) Refund(ctx context.Context, subject string, d *ratelimit.Decision) error {
	if f.changes++; f.down != nil {
		return f.down
	}
	f.during = ctx.Err()
	return f.Limiter.Refund(ctx, subject, d)
}

// used returns how much of the minute and of the day a subject has used.
func used(t *testing.T, l *memory.Limiter, subject string) [2]int64 {
	t.Helper()
	wide := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(ratelimit.MaxLimit), ratelimit.PerDay(ratelimit.MaxLimit))
	d, err := l.Peek(t.Context(), subject, wide)
	if err != nil {
		t.Fatal(err)
	}
	return [2]int64{ratelimit.MaxLimit - d.States[0].Remaining, ratelimit.MaxLimit - d.States[1].Remaining}
}

func wantUsed(t *testing.T, l *memory.Limiter, what string, want [2]int64) {
	t.Helper()
	if got := used(t, l, "a"); got != want {
		t.Errorf("%s: used %v, want %v", what, got, want)
	}
}

// reserve sends a request that reserves 40 units and returns its reservation. work is
// done by the handler.
func reserve(t *testing.T, l ratelimit.Limiter, c ratelimit.Caller, opts ratelimit.Options, work func(http.ResponseWriter, *ratelimit.Reservation)) (res *ratelimit.Reservation) {
	t.Helper()
	opts.Context = true
	opts.Cost = func(*http.Request) int64 { return 40 }
	served := false
	h := handler(t, l, c, opts, func(w http.ResponseWriter, r *http.Request) {
		served = true
		res = ratelimit.FromContext(r.Context())
		if work != nil {
			work(w, res)
		}
	})
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	if !served || res == nil {
		t.Fatalf("served is %t with reservation %v, want that the handler finds one", served, res)
	}
	return res
}

func settle(t *testing.T, res *ratelimit.Reservation, units int64) {
	t.Helper()
	if err := res.Settle(t.Context(), units); err != nil {
		t.Errorf("Settle(%d): %v", units, err)
	}
}

// A settled request costs what Settle says, in all windows, even beyond the limit. The
// last call counts.
func TestSettleARequest(t *testing.T) {
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	for name, units := range map[string][]int64{
		"less": {7}, "nothing": {0}, "the same": {40}, "more": {63}, "beyond the limit": {250}, "the largest": {ratelimit.MaxLimit + 9},
		"twice the same": {63, 63}, "down from the largest": {ratelimit.MaxLimit + 9, ratelimit.MaxLimit - 1000}, "up and down": {63, 20, 35}, "down from beyond the limit": {1234, 5}, "all back": {250, 0}, "again from nothing": {0, 9},
	} {
		t.Run(name, func(t *testing.T) {
			at := time.Unix(now, 0)
			l := engine(t, &at)
			res := reserve(t, l, caller, ratelimit.Options{}, nil)
			wantUsed(t, l, "reserved", [2]int64{40, 40})
			for _, n := range units {
				settle(t, res, n)
				n = min(n, ratelimit.MaxLimit)
				wantUsed(t, l, "settled", [2]int64{n, n})
			}
			if d := res.Decision(); d.Cost != 40 || d.States[0].Remaining != 60 || res.Caller().Subject != caller.Subject || res.Caller().Plan != caller.Plan {
				t.Errorf("the reservation is for %v, %+v; want the decision as it was made", res.Caller(), d)
			}
		})
	}
}

// More than the burst of a smooth quota is given back in parts.
func TestSettleUnderASmoothQuota(t *testing.T) {
	at := time.Unix(now, 0)
	l := engine(t, &at)
	plan := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(3600).Smooth(50))
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: plan}, ratelimit.Options{}, nil)
	for _, units := range []int64{400, 45} {
		settle(t, res, units)
	}
	if d, err := l.Peek(t.Context(), "a", plan); err != nil || d.Remaining() != 5 {
		t.Errorf("%d of 50 are left, with error %v, want 5", d.Remaining(), err)
	}
}

// Units that were added to a smooth quota are given back until they have come back by
// themselves, which is long after those that were charged at first.
func TestSettleUnderASmoothQuotaTwice(t *testing.T) {
	at := time.Unix(now, 0)
	l := engine(t, &at)
	plan := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(3600).Smooth(50))
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: plan}, ratelimit.Options{}, nil)
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
	l := engine(t, &at)
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{}, nil)
	settle(t, res, 250)
	d, err := l.Peek(t.Context(), "a", tokens)
	if err != nil || d.Outcome != ratelimit.Limited || d.Remaining() != 0 || d.StrikesLeft != tokens.Strikes() {
		t.Errorf("the next request would be %v with %d units and %d strikes left (%v), want limited with 0 and all %d",
			d.Outcome, d.Remaining(), d.StrikesLeft, err, tokens.Strikes())
	}
}

// Units count in the windows in which the request was charged, as far as they are open.
func TestSettleAfterTheResponse(t *testing.T) {
	at := time.Unix(now, 0)
	l := engine(t, &at)
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	first := reserve(t, l, caller, ratelimit.Options{}, nil)
	second := reserve(t, l, caller, ratelimit.Options{}, nil)
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
	l := &flaky{Limiter: engine(t, &at)}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, units := range []int64{50, 3} {
		res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{}, nil)
		if err := res.Settle(ctx, units); err != nil || l.during != nil {
			t.Errorf("Settle(%d) with a context that ended: %v, and the engine's has the error %v; want neither", units, err, l.during)
		}
	}
	wantUsed(t, l.Limiter, "settled", [2]int64{53, 53})
}

// While the engine is down, Settle is an error. It can be called again.
func TestSettleWithADeadEngine(t *testing.T) {
	at := time.Unix(now, 0)
	l := &flaky{Limiter: engine(t, &at)}
	for _, units := range []int64{70, 3} {
		if err := l.Reset(t.Context(), "a"); err != nil {
			t.Fatal(err)
		}
		res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{}, nil)
		l.down = ratelimit.ErrUnavailable
		for range 2 {
			if err := res.Settle(t.Context(), units); !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("Settle(%d): got error %v, want one that wraps ErrUnavailable", units, err)
			}
		}
		l.down = nil
		wantUsed(t, l.Limiter, "before the engine is back", [2]int64{40, 40})
		settle(t, res, units)
		wantUsed(t, l.Limiter, "after that", [2]int64{units, units})
	}
}

// What was not charged is not settled.
func TestSettleOfWhatWasNotCharged(t *testing.T) {
	at := time.Unix(now, 0)
	spent := ratelimit.MustPlan("spent", ratelimit.DefaultPenalty(), ratelimit.PerMinute(40))
	for name, c := range map[string]struct {
		caller  ratelimit.Caller
		opts    ratelimit.Options
		down    bool
		outcome ratelimit.Outcome
	}{
		"exempt":                {ratelimit.Caller{Kind: ratelimit.KindExempt}, ratelimit.Options{}, false, 0},
		"unlimited":             {ratelimit.Caller{Subject: "a", Plan: ratelimit.UnlimitedPlan("u")}, ratelimit.Options{}, false, ratelimit.Allowed},
		"suspended, in shadow":  {ratelimit.Caller{Subject: "a", Plan: ratelimit.SuspendedPlan("s")}, ratelimit.Options{Shadow: true}, false, ratelimit.Suspended},
		"limited, in shadow":    {ratelimit.Caller{Subject: "b", Plan: spent}, ratelimit.Options{Shadow: true}, false, ratelimit.Limited},
		"invalid, in shadow":    {ratelimit.Caller{Subject: "a"}, ratelimit.Options{Shadow: true}, false, 0},
		"fail open":             {ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{OnFailure: ratelimit.FailOpen}, true, ratelimit.Allowed},
		"a failure, in shadow":  {ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{Shadow: true}, true, ratelimit.Allowed},
		"exempt, with a refund": {ratelimit.Caller{Kind: ratelimit.KindExempt}, ratelimit.Options{Refund: true}, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			l := &flaky{Limiter: engine(t, &at)}
			if _, err := l.Take(t.Context(), "b", spent, 40); err != nil {
				t.Fatal(err)
			}
			var used ratelimit.Limiter = l
			if c.down {
				used = downAt{l}
			}
			res := reserve(t, used, c.caller, c.opts, nil)
			for _, units := range []int64{0, 40, 70} {
				settle(t, res, units)
			}
			if l.changes > 0 {
				t.Errorf("the engine was asked to change usage %d times, want never", l.changes)
			}
			if got := res.Decision().Outcome; got != c.outcome {
				t.Errorf("the decision is %v, want %v", got, c.outcome)
			}
		})
	}
}

// downAt decides nothing, but could still change usage.
type downAt struct{ *flaky }

func (downAt) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

// In shadow mode an admitted request is charged, and settled.
func TestSettleInShadowMode(t *testing.T) {
	at := time.Unix(now, 0)
	l := engine(t, &at)
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{Shadow: true}, nil)
	settle(t, res, 250)
	wantUsed(t, l, "settled", [2]int64{250, 250})
}

// A request that its handler has settled is not given back, however it ends. It can be
// settled after it was refunded.
func TestSettleAndRefund(t *testing.T) {
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	never := func(*http.Request, int) bool { return false }
	for name, opts := range map[string]ratelimit.Options{"Refund": {Refund: true}, "ChargeIf": {ChargeIf: never}, "both": {Refund: true, ChargeIf: never}} {
		at := time.Unix(now, 0)
		l := engine(t, &at)
		if _, err := l.Take(t.Context(), "a", tokens, 5); err != nil {
			t.Fatal(err)
		}
		res := reserve(t, l, caller, opts, func(w http.ResponseWriter, _ *ratelimit.Reservation) { w.WriteHeader(500) })
		wantUsed(t, l, name+": given back", [2]int64{5, 5})
		settle(t, res, 12)
		wantUsed(t, l, name+": settled after that", [2]int64{17, 17})
		reserve(t, l, caller, opts, func(w http.ResponseWriter, res *ratelimit.Reservation) {
			settle(t, res, 50)
			w.WriteHeader(500)
		})
		wantUsed(t, l, name+": settled before the end", [2]int64{67, 67})
	}
}

// Concurrent calls about one request leave it at the units of one of them.
func TestSettleConcurrently(t *testing.T) {
	at := time.Unix(now, 0)
	l := engine(t, &at)
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{}, nil)
	var wg sync.WaitGroup
	for i := range 20 {
		wg.Go(func() { settle(t, res, int64(i%2)*90) })
	}
	wg.Wait()
	if got := used(t, l, "a"); got != [2]int64{0, 0} && got != [2]int64{90, 90} {
		t.Errorf("used %v, want 0 or 90", got)
	}
}

// Much more than a limit is given back in parts, for half a second at most.
func TestSettleTakesHalfASecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Unix(now, 0)
		l := engine(t, &at)
		res := reserve(t, slowRefunder{l}, ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{}, nil)
		settle(t, res, 1000)
		begin := time.Now()
		err := res.Settle(t.Context(), 0)
		if took := time.Since(begin); !errors.Is(err, ratelimit.ErrUnavailable) || took > time.Second {
			t.Errorf("got error %v after %v, want one that wraps ErrUnavailable in about half a second", err, took)
		}
		for range 9 {
			err = res.Settle(t.Context(), 0)
		}
		if err != nil {
			t.Errorf("the last of several calls: %v", err)
		}
		wantUsed(t, l, "settled", [2]int64{0, 0})
	})
}

type slowRefunder struct{ *memory.Limiter }

func (s slowRefunder) Refund(ctx context.Context, subject string, d *ratelimit.Decision) error {
	time.Sleep(300 * time.Millisecond)
	return s.Limiter.Refund(ctx, subject, d)
}

func TestSettleRefuses(t *testing.T) {
	at := time.Unix(now, 0)
	l := engine(t, &at)
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	type onlyRefund struct {
		ratelimit.Limiter
		ratelimit.Refunder
	}
	reserved := reserve(t, l, caller, ratelimit.Options{}, nil)
	for name, c := range map[string]struct {
		res         *ratelimit.Reservation
		units       int64
		unsupported bool
	}{
		"no reservation":     {ratelimit.FromContext(t.Context()), 1, false},
		"negative units":     {reserved, -1, false},
		"no UsageAdder":      {reserve(t, onlyRefund{l, l}, caller, ratelimit.Options{}, nil), 41, true},
		"neither of the two": {reserve(t, onlyTake{engine(t, &at)}, caller, ratelimit.Options{}, nil), 39, true},
	} {
		err := c.res.Settle(t.Context(), c.units)
		if !errors.Is(err, ratelimit.ErrInvalid) || errors.Is(err, errors.ErrUnsupported) != c.unsupported {
			t.Errorf("%s: got error %v, want one that wraps ErrInvalid, and ErrUnsupported: %t", name, err, c.unsupported)
		}
	}
	settle(t, reserve(t, onlyTake{engine(t, &at)}, caller, ratelimit.Options{}, nil), 40) // nothing is added or given back
	var none *ratelimit.Reservation
	if none.Decision() != (ratelimit.Decision{}) || none.Caller().Subject != "" {
		t.Error("a request without a reservation has a decision or a caller")
	}
}

// What else is in the context of the request stays there.
func TestContextKeepsOtherValues(t *testing.T) {
	type userKey struct{}
	at := time.Unix(now, 0)
	for _, opts := range []ratelimit.Options{{Context: true}, {Context: true, Refund: true}} {
		h := handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: tokens}, opts, func(_ http.ResponseWriter, r *http.Request) {
			if user := r.Context().Value(userKey{}); user != "ann" {
				t.Errorf("the handler finds the user %v, want ann", user)
			}
		})
		r := httptest.NewRequest("GET", "/", nil)
		h.ServeHTTP(httptest.NewRecorder(), r.WithContext(context.WithValue(r.Context(), userKey{}, "ann")))
	}
}

// Without the option the context has nothing, and the request is not copied.
func TestContextIsAnOption(t *testing.T) {
	at := time.Unix(now, 0)
	var outer *http.Request
	h := handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{}, func(_ http.ResponseWriter, r *http.Request) {
		if r != outer || ratelimit.FromContext(r.Context()) != nil {
			t.Error("the request is a copy, or has a reservation")
		}
	})
	outer = httptest.NewRequest("GET", "/", nil)
	h.ServeHTTP(httptest.NewRecorder(), outer)
	h = handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: tokens}, ratelimit.Options{Refund: true}, func(_ http.ResponseWriter, r *http.Request) {
		if r != outer || ratelimit.FromContext(r.Context()) != nil {
			t.Error("with Refund alone the request is a copy, or has a reservation")
		}
	})
	h.ServeHTTP(httptest.NewRecorder(), outer)
}

// A decision about several charges says, as one about one does, that requests differ in cost.
func TestContextOfSeveralChargesIsWeighted(t *testing.T) {
	at := time.Unix(now, 0)
	caller := ratelimit.Caller{Subject: "a", Plan: tokens, Also: []ratelimit.Charge{{Subject: "b", Plan: tokens}}}
	for _, weighted := range []bool{false, true} {
		opts := ratelimit.Options{Context: true}
		if weighted {
			opts.Cost = func(*http.Request) int64 { return 1 }
		}
		h := handler(t, engine(t, &at), caller, opts, func(_ http.ResponseWriter, r *http.Request) {
			if d := ratelimit.FromContext(r.Context()).Decision(); d.Weighted != weighted {
				t.Errorf("with Options.Cost (%t) Weighted is %t", weighted, d.Weighted)
			}
		})
		get(h)
	}
}

// The copy of the request does not hide the pattern from outer handlers.
func TestContextKeepsThePattern(t *testing.T) {
	at := time.Unix(now, 0)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /v1/pets", ok)
	for _, opts := range []ratelimit.Options{{Context: true}, {Context: true, Refund: true}} {
		h := handler(t, engine(t, &at), ratelimit.Caller{Subject: "a", Plan: tokens}, opts, mux.ServeHTTP)
		r := httptest.NewRequest("GET", "/v1/pets", nil)
		h.ServeHTTP(httptest.NewRecorder(), r)
		if r.Pattern != "GET /v1/pets" {
			t.Errorf("the pattern outside is %q", r.Pattern)
		}
	}
}
