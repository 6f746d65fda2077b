package engine_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const now = 1_800_000_000

// decision returns a settled decision at now and a quarter of a second.
func decision(outcome ratelimit.Outcome, cost int64, states ...ratelimit.State) ratelimit.Decision {
	quotas := []ratelimit.Quota{ratelimit.PerMinute(60), ratelimit.PerHour(500), ratelimit.PerDay(1000)}
	d := ratelimit.Decision{
		Outcome: outcome, Cost: cost, Time: now*1e9 + 250e6,
		Plan: ratelimit.MustPlan("p", ratelimit.Penalty{}, quotas[:len(states)]...),
	}
	copy(d.States[:], states)
	engine.Complete(&d)
	return d
}

func TestComplete(t *testing.T) {
	type states = []ratelimit.State
	for _, test := range []struct {
		name       string
		d          ratelimit.Decision
		applicable int
		retryAfter time.Duration
	}{
		{"allowed: the least remaining", decision(ratelimit.Allowed, 1, states{{Remaining: 7, Reset: now + 5}, {Remaining: 3, Reset: now + 50}, {Remaining: 9, Reset: now + 500}}...), 1, 0},
		{"allowed, tie: the later reset", decision(ratelimit.Allowed, 1, states{{Remaining: 3, Reset: now + 5}, {Remaining: 3, Reset: now + 500}, {Remaining: 3, Reset: now + 50}}...), 1, 0},
		{"limited: the one that refuses", decision(ratelimit.Limited, 1, states{{Remaining: 7, Reset: now + 5}, {Remaining: 0, Reset: now + 50}, {Remaining: 9, Reset: now + 500}}...), 1, 49_750 * time.Millisecond},
		{"limited by two: the later reset", decision(ratelimit.Limited, 1, states{{Remaining: 0, Reset: now + 5}, {Remaining: 0, Reset: now + 50}, {Remaining: 9, Reset: now + 500}}...), 1, 49_750 * time.Millisecond},
		{"limited by cost: not the least remaining", decision(ratelimit.Limited, 5, states{{Remaining: 1, Reset: now + 5}, {Remaining: 4, Reset: now + 50}, {Remaining: 9, Reset: now + 500}}...), 1, 49_750 * time.Millisecond},
		{"limited at the very end", decision(ratelimit.Limited, 1, states{{Remaining: 0, Reset: now}}...), 0, 1},
	} {
		if test.d.Applicable != test.applicable || test.d.RetryAfter != test.retryAfter {
			t.Errorf("%s: got quota %d and %v, want quota %d and %v",
				test.name, test.d.Applicable, test.d.RetryAfter, test.applicable, test.retryAfter)
		}
	}
}

func TestBannedDecision(t *testing.T) {
	d := decision(ratelimit.Banned, 1, ratelimit.State{Remaining: 7, Reset: now + 5}, ratelimit.State{Remaining: 9, Reset: now + 50})
	d.BanEnds = now + 20
	engine.Complete(&d)
	if d.Remaining() != 0 || d.Reset() != now+20 || d.RetryAfter != 19_750*time.Millisecond {
		t.Errorf("during a ban: %d remaining, reset %d, retry after %v; want 0, the end of the ban, 19.75s",
			d.Remaining(), d.Reset(), d.RetryAfter)
	}
	d.States[1].Remaining = 0
	engine.Complete(&d)
	if d.Reset() != now+50 || d.RetryAfter != 49_750*time.Millisecond {
		t.Errorf("a used up quota that outlasts the ban: reset %d, retry after %v; want that of the quota for both", d.Reset()-now, d.RetryAfter)
	}
}

// A decision that is settled again, after its outcome changed, keeps nothing of
// what it was.
func TestCompleteAgain(t *testing.T) {
	d := decision(ratelimit.Limited, 1, ratelimit.State{Remaining: 7, Reset: now + 5}, ratelimit.State{Remaining: 0, Reset: now + 50})
	d.Outcome, d.States[1].Remaining = ratelimit.Allowed, 9
	engine.Complete(&d)
	if d.Applicable != 0 || d.RetryAfter != 0 {
		t.Errorf("got quota %d and %v, want quota 0 and no wait", d.Applicable, d.RetryAfter)
	}
}

// Without an engine every quota has all of its limit, and the bucket of a smooth one is full.
func TestUncounted(t *testing.T) {
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerHour(3600).Smooth(100))
	d := engine.Uncounted(plan, 1, time.Unix(now, 1))
	want := [4]ratelimit.State{{Remaining: 60, Reset: now + 60}, {Remaining: 100, Reset: now + 1}}
	if d.States != want || d.Applicable != 0 {
		t.Errorf("got quota %d of %+v, want the first of %+v", d.Applicable, d.States, want)
	}
}
