package limit_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A client that disconnects does not avoid the charge.
func TestSettleAfterTheContextEnded(t *testing.T) {
	l := &flaky{Limiter: atNow()}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, units := range []int64{50, 3} {
		res := reserve(t, struct{ *flaky }{l}, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{}, nil)
		if err := res.Settle(ctx, units); err != nil || l.during != nil {
			t.Errorf("Settle(%d) with a context that ended: %v, and the engine's has the error %v; want neither", units, err, l.during)
		}
	}
	wantUsed(t, l.Limiter, "settled", [2]int64{53, 53})
	l.changes = 0
	h := handler(l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{Settle: true, Hold: time.Minute}, ok)
	h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "GET", "/", nil))
	if l.changes != 1 || l.during != nil {
		t.Errorf("the engine was called %d times to end the hold, with a context that has the error %v; want once and none", l.changes, l.during)
	}
}

// A request on which Settle was called stays charged, also if that Settle failed.
func TestSettleThatFailsKeepsTheCharge(t *testing.T) {
	l := &flaky{Limiter: atNow(), down: ratelimit.ErrUnavailable}
	reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{ChargeIf: limit.NotServerError}, func(w http.ResponseWriter, res *limit.Settlement) {
		if err := res.Settle(t.Context(), 70); !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Errorf("got error %v, want the engine's", err)
		}
		l.down = nil
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	wantUsed(t, l.Limiter, "settled and failed", [2]int64{40, 40})
}

// Concurrent calls about one request leave it at the units of one of them.
func TestSettleConcurrently(t *testing.T) {
	l := atNow()
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

// A lossy engine makes each adjustment once, by its id. While lose is set, it loses the call,
// or the answer.
type lossy struct {
	*memory.Limiter
	random *rand.Rand
	lose   bool
	made   map[string]bool
	lost   map[string]bool // the subjects of calls that were lost, or whose answer was
}

func (l *lossy) Hold(string, time.Duration) ratelimit.Limiter { return l.Limiter }

func (l *lossy) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	fate := 3
	if l.lose {
		fate = l.random.IntN(4)
	}
	l.lost[subject] = fate < 2
	if fate == 0 {
		return ratelimit.ErrUnavailable
	}
	if !l.made[subject+id] || id == "" {
		if err := l.Limiter.Adjust(ctx, subject, d, units, id); err != nil {
			return err
		}
		l.made[subject+id] = true
	}
	if fate == 1 {
		return ratelimit.ErrUnavailable
	}
	return nil
}

// Whatever is lost between, the charges of a request cost what the last Settle says, in all
// windows and even beyond the limit, except one with a cost of its own. A call that is lost
// does not keep Settle from changing the other charge. A request that was settled is not given back, and one that was given back can be settled.
func TestSettleHistories(t *testing.T) {
	memory := atNow()
	for seed := range race.Fewer(2000) {
		random := rand.New(rand.NewPCG(uint64(seed), 0))
		l := &lossy{memory, random, false, map[string]bool{}, map[string]bool{}}
		caller := ratelimit.Caller{Subject: "a", Plan: tokens}
		for _, also := range []ratelimit.Charge{{Subject: "b", Plan: tokens}, {Subject: "c", Plan: tokens, Cost: 5}} {
			if random.IntN(2) == 0 {
				caller.Also = append(caller.Also, also)
			}
		}
		for _, subject := range []string{"a", "b", "c"} {
			testcheck.NoError(t, l.Reset(t.Context(), subject))
		}
		want := int64(40)
		choose := func() int64 {
			return []int64{0, 5, 40, 63, 250, fixedwindow.MaxUnits + 9, fixedwindow.MaxUnits - 1000}[random.IntN(7)]
		}
		step := func(res *limit.Settlement) {
			units := choose()
			l.lose = random.IntN(2) == 0
			err := res.Settle(t.Context(), units)
			if err != nil && (!l.lose || !errors.Is(err, ratelimit.ErrUnavailable)) {
				t.Fatalf("seed %d: Settle(%d): %v", seed, units, err)
			}
			want = min(units, fixedwindow.MaxUnits)
			if err != nil && len(caller.Also) > 0 && caller.Also[0].Cost == 0 && !l.lost["b"] && used(t, memory, "b") != [2]int64{want, want} {
				t.Fatalf("seed %d: Settle(%d) has failed for a, and b has used %v", seed, units, used(t, memory, "b"))
			}
			if l.lose = false; err != nil { // a caller tries again, mostly with other units
				units = choose()
				settle(t, res, units)
				want = min(units, fixedwindow.MaxUnits)
			}
		}
		inside, failed, own := random.IntN(3), random.IntN(2) == 0, int64(5)
		loseRefund := len(caller.Also) == 0 && random.IntN(2) == 0
		opts := limit.Options{Shadow: random.IntN(2) == 0, ChargeIf: limit.NotServerError}
		if random.IntN(2) == 0 {
			opts.Hold = time.Minute
		}
		res := reserve(t, l, caller, opts, func(w http.ResponseWriter, res *limit.Settlement) {
			for range inside {
				step(res)
			}
			if failed {
				w.WriteHeader(http.StatusServiceUnavailable)
				l.lose = loseRefund
			}
		})
		if failed && inside == 0 {
			want, own = 0, 0
		}
		if loseRefund && failed && inside == 0 { // the refund was made or not
			step(res)
		}
		for i := 0; ; i++ {
			for subject, units := range map[string]int64{"a": want, "b": want, "c": own} {
				charged := subject == "a" || slices.ContainsFunc(caller.Also, func(c ratelimit.Charge) bool { return c.Subject == subject })
				if got := used(t, memory, subject); charged && got != [2]int64{units, units} {
					t.Fatalf("seed %d: %s has used %v, want %d", seed, subject, got, units)
				}
			}
			if i == 3 {
				break
			}
			step(res)
		}
	}
}

// If the answer to the last Settle of a held charge is lost, the end of the request repeats it.
func TestHoldEndsAsItWasToBeSettled(t *testing.T) {
	for seed := range uint64(20) {
		l := &lossy{atNow(), rand.New(rand.NewPCG(seed, 0)), false, map[string]bool{}, map[string]bool{}}
		var err error
		caller := ratelimit.Caller{Subject: "a", Plan: tokens}
		reserve(t, l, caller, limit.Options{Hold: time.Minute}, func(_ http.ResponseWriter, res *limit.Settlement) {
			l.lose = true
			err = res.Settle(t.Context(), 70)
			l.lose = false
		})
		if got := used(t, l.Limiter, "a"); got != [2]int64{70, 70} {
			t.Errorf("seed %d: Settle returned %v, and %v are used in the end, want 70", seed, err, got)
		}
	}
}

// The end of a request waits for a Settle that has begun, and does not settle beside it.
func TestHoldEndsAfterASettle(t *testing.T) {
	l := &slowAdjuster{Limiter: atNow(), begun: make(chan struct{}, 100)}
	var wg sync.WaitGroup
	reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{Hold: time.Minute}, func(_ http.ResponseWriter, res *limit.Settlement) {
		wg.Go(func() { settle(t, res, 70) })
		<-l.begun
	})
	wg.Wait()
	if l.together.Load() {
		t.Error("two adjustments of one charge were made at once")
	}
	wantUsed(t, l.Limiter, "settled", [2]int64{70, 70})
}

// A Settle waits for a refund that has begun.
func TestSettleWaitsForARefund(t *testing.T) {
	l := &slowAdjuster{Limiter: atNow(), begun: make(chan struct{}, 100)}
	var wg sync.WaitGroup
	reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{ChargeIf: limit.NotServerError}, func(w http.ResponseWriter, res *limit.Settlement) {
		wg.Go(func() { <-l.begun; settle(t, res, 70) })
		w.WriteHeader(http.StatusServiceUnavailable)
	})
	wg.Wait()
	if l.together.Load() {
		t.Error("two adjustments of one charge were made at once")
	}
	wantUsed(t, l.Limiter, "settled", [2]int64{70, 70})
}

// A slowAdjuster notes whether it is asked for several adjustments at once.
type slowAdjuster struct {
	*memory.Limiter
	begun    chan struct{}
	asked    atomic.Int32
	together atomic.Bool
}

func (l *slowAdjuster) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if l.asked.Add(1) > 1 {
		l.together.Store(true)
	}
	defer l.asked.Add(-1)
	l.begun <- struct{}{}
	time.Sleep(20 * time.Millisecond)
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return l.Limiter.Adjust(ctx, subject, d, units, id)
}

// onlyTake is an engine that can do nothing else.
type onlyTake struct{ ratelimit.Limiter }

// The further charges of an unlimited caller are made, and Settle changes them.
func TestSettleOfAnUnlimitedCaller(t *testing.T) {
	l := atNow()
	caller := ratelimit.Caller{Subject: "staff", Plan: ratelimit.UnlimitedPlan("u"), Also: []ratelimit.Charge{{Subject: "a", Plan: tokens}}}
	res := reserve(t, l, caller, limit.Options{}, nil)
	if d := res.Decision(); d.Plan != tokens || res.Caller().Subject != "staff" {
		t.Errorf("the decision about %v is for %q, want one about the further charge for the caller", d.Plan, res.Caller().Subject)
	}
	wantUsed(t, l, "charged", [2]int64{40, 40})
	settle(t, res, 70)
	wantUsed(t, l, "settled", [2]int64{70, 70})
}

// An engine that hangs returns the error of its context when the half second is over, and the end
// of a request waits no longer for it.
func TestSettleWithAnEngineThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		at := time.Unix(now, 0)
		res := reserve(t, hung{newEngine(&at)}, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{Hold: time.Minute}, nil)
		for _, units := range []int64{70, 3} {
			err := res.Settle(t.Context(), units)
			if !errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Settle(%d): got error %v, want one that wraps ErrUnavailable and that of the context", units, err)
			}
		}
	})
}

type hung struct{ *memory.Limiter }

func (hung) Adjust(ctx context.Context, _ string, _ *ratelimit.Decision, _ int64, _ string) error {
	<-ctx.Done()
	return ctx.Err()
}

// An adjustment that the engine finds invalid was not made, and is not repeated.
func TestSettleAfterAnInvalidCall(t *testing.T) {
	l := &flaky{Limiter: atNow()}
	res := reserve(t, l, ratelimit.Caller{Subject: "a", Plan: tokens}, limit.Options{}, nil)
	l.down = ratelimit.ErrInvalid
	if err := res.Settle(t.Context(), 70); !errors.Is(err, ratelimit.ErrInvalid) || errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("got error %v, want one that wraps ErrInvalid alone", err)
	}
	l.down, l.changes = nil, 0
	settle(t, res, 3)
	wantUsed(t, l.Limiter, "settled again", [2]int64{3, 3})
	if l.changes != 1 {
		t.Errorf("the engine was called %d times, want once", l.changes)
	}
}

func TestSettleRefuses(t *testing.T) {
	l := atNow()
	caller := ratelimit.Caller{Subject: "a", Plan: tokens}
	reserved := reserve(t, l, caller, limit.Options{}, nil)
	for name, c := range map[string]struct {
		res         *limit.Settlement
		units       int64
		unsupported bool
	}{
		"no settlement":         {limit.FromContext(t.Context()), 1, false},
		"negative units":        {reserved, -1, false},
		"not an Adjuster, more": {reserve(t, onlyTake{atNow()}, caller, limit.Options{}, nil), 41, true},
		"not an Adjuster, less": {reserve(t, onlyTake{atNow()}, caller, limit.Options{}, nil), 39, true},
	} {
		err := c.res.Settle(t.Context(), c.units)
		if !errors.Is(err, ratelimit.ErrInvalid) || errors.Is(err, errors.ErrUnsupported) != c.unsupported {
			t.Errorf("%s: got error %v, want one that wraps ErrInvalid, and ErrUnsupported: %t", name, err, c.unsupported)
		}
	}
	settle(t, reserve(t, onlyTake{atNow()}, caller, limit.Options{}, nil), 40) // nothing is added or given back
	var none *limit.Settlement
	d := none.Decision()
	if numbers := [4]int64{d.Limit(), d.Used(0), d.Remaining(), d.Reset()}; d != (ratelimit.Decision{}) || numbers != [4]int64{} || none.Caller().Subject != "" {
		t.Errorf("a request without a settlement has a decision, with the numbers %v, or a caller", numbers)
	}
}
