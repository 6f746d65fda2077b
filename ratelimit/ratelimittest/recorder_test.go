package ratelimittest_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A Recorder changes nothing: it keeps the promises of the engine inside it.
func TestRecorderConforms(t *testing.T) {
	enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
		clock := ratelimittest.NewClock(start)
		embedded := newEngine(t, clock)
		return enginetest.Engine{
			Limiter: struct {
				*ratelimittest.Recorder
				operator
			}{ratelimittest.NewRecorder(embedded), embedded},
			Set: func(to time.Time) { clock.Advance(to.Sub(clock.Now())) },
		}
	}, enginetest.Gaps{})
}

// An operator bans and resets, for which there is no Recorder.
type operator interface {
	engine.Banner
	Reset(ctx context.Context, subject string) error
}

func newEngine(t *testing.T, clock *ratelimittest.Clock) *memory.Limiter {
	t.Helper()
	embedded := testcheck.Must(memory.New(memory.Options{Now: clock.Now}))
	return embedded
}

// noon is the beginning of a minute and not of a day.
var noon = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

var plan = ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(2), ratelimit.PerDay(100))

func TestCalls(t *testing.T) {
	r, ctx := ratelimittest.NewRecorder(newEngine(t, ratelimittest.NewClock(noon))), t.Context()
	day := ratelimit.MustPlan("all", ratelimit.Penalty{}, ratelimit.PerDay(1))
	take := func(subject string, cost int64, want ratelimit.Outcome) {
		t.Helper()
		if d, err := r.Take(ctx, subject, plan, cost); err != nil || d.Outcome != want {
			t.Errorf("Take of %s for %d: %v, %v, want %v", subject, cost, d.Outcome, err, want)
		}
	}
	takeAll := func(want ...ratelimit.Outcome) {
		t.Helper()
		decisions := make([]ratelimit.Decision, 2)
		err := r.TakeAll(ctx, []ratelimit.Charge{{Subject: "bob", Plan: plan, Cost: 1}, {Subject: "all", Plan: day, Cost: 1}}, decisions)
		if got := []ratelimit.Outcome{decisions[0].Outcome, decisions[1].Outcome}; err != nil || !slices.Equal(got, want) {
			t.Errorf("TakeAll: %v, %v, want %v", got, err, want)
		}
	}
	take("ann", 2, ratelimit.Allowed)
	take("ann", 1, ratelimit.Limited)
	takeAll(ratelimit.Allowed, ratelimit.Allowed)
	takeAll(ratelimit.Skipped, ratelimit.Limited)
	r.Fail()
	if _, err := r.Take(ctx, "ann", plan, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("Take after Fail: %v, want ErrUnavailable", err)
	}
	if d, err := r.Take(ctx, "ann", nil, 1); !errors.Is(err, ratelimit.ErrInvalid) || d.Outcome != 0 {
		t.Errorf("Take without a plan: %v, want ErrInvalid", err)
	}
	if d, err := r.Take(ctx, "ann", ratelimit.SuspendedPlan(""), 1); err != nil || d.Outcome != ratelimit.Suspended {
		t.Errorf("Take with a suspended plan: %v, %v, want suspended", d.Outcome, err)
	}
	type call struct {
		subject string
		plan    *ratelimit.Plan
		cost    int64
		outcome ratelimit.Outcome
		failed  bool
	}
	want := []call{
		{"ann", plan, 2, ratelimit.Allowed, false}, {"ann", plan, 1, ratelimit.Limited, false},
		{"bob", plan, 1, ratelimit.Allowed, false}, {"all", day, 1, ratelimit.Allowed, false},
		{"bob", plan, 1, ratelimit.Skipped, false}, {"all", day, 1, ratelimit.Limited, false},
		{"ann", plan, 1, 0, true},
	}
	var got []call
	for _, c := range r.Calls() {
		got = append(got, call{c.Subject, c.Plan, c.Cost, c.Decision.Outcome, c.Decision.Plan == nil})
	}
	if !slices.Equal(got, want) {
		t.Errorf("Calls:\n%v, want\n%v", got, want)
	}
}

func TestDeny(t *testing.T) {
	clock := ratelimittest.NewClock(noon.Add(43500 * time.Millisecond))
	r, ctx := ratelimittest.NewRecorder(newEngine(t, clock)), t.Context()
	free := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerHour(100))
	charges := []ratelimit.Charge{{Subject: "ann", Plan: plan, Cost: 1}, {Subject: "bob", Plan: free, Cost: 1}}
	decisions := make([]ratelimit.Decision, 2)
	for _, c := range []struct {
		outcome ratelimit.Outcome
		retry   []time.Duration // of ann, whose minute ends in 16.5 s, and of bob, whose plan has no penalty
	}{
		{ratelimit.Limited, []time.Duration{16500 * time.Millisecond, 59*time.Minute + 16500*time.Millisecond}},
		{ratelimit.Banned, []time.Duration{60500 * time.Millisecond, 60500 * time.Millisecond}}, // until a whole second
	} {
		r.Deny(c.outcome)
		must(t, r.TakeAll(ctx, charges, decisions))
		for i, d := range decisions {
			one, err := r.Take(ctx, charges[i].Subject, charges[i].Plan, 1)
			if d != one || err != nil || d.Outcome != c.outcome || d.RetryAfter != c.retry[i] || d.Remaining() != 0 || d.Applicable != 0 || limit.Denial(ratelimit.Caller{}, &d) == nil {
				t.Errorf("%v: TakeAll decides %+v, and Take %+v, %v; want a denial for %v", c.outcome, d, one, err, c.retry[i])
			}
		}
	}
	r.Deny(ratelimit.Limited)
	mixed := ratelimit.MustPlan("mixed", ratelimit.Penalty{}, ratelimit.PerMinute(1).Soft(), ratelimit.PerHour(100))
	if d, err := r.Take(ctx, "ann", mixed, 1); err != nil || d.Limit() != 100 || d.Remaining() != 0 || d.Used(0) != 0 {
		t.Errorf("beside a soft quota: %+v, %v, want a denial by the hard one", d, err)
	}
	if d, err := r.Take(ctx, "ann", plan, 2); err != nil || d.Cost != 2 {
		t.Errorf("a denial of 2 units: %+v, %v, want the cost of the request", d, err)
	}
	r.Resume()
	if d, err := r.Take(ctx, "ann", plan, 1); err != nil || !d.Allowed() || d.Remaining() != 1 {
		t.Errorf("after Resume: %+v, %v, want the first request to be charged", d, err)
	}
	defer func() {
		if recover() == nil {
			t.Error("Deny(Allowed) must panic")
		}
	}()
	r.Deny(ratelimit.Allowed)
}
