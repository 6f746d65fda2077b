package redisrate_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
)

func TestDecision(t *testing.T) {
	f := newFixture(t, redisrate.Options{})
	p := plan(ratelimit.PerMinute(6)) // a unit comes back every 10 seconds
	at := func(d time.Duration) int64 { return start.Truncate(time.Second).Add(d).Unix() }
	for _, step := range []struct {
		name    string
		advance time.Duration
		cost    int64
		want    ratelimit.Decision
	}{
		{"the first", 0, 1, ratelimit.Decision{
			Outcome: ratelimit.Allowed, States: states(5, at(11*time.Second)),
		}},
		{"all the rest", 0, 5, ratelimit.Decision{
			Outcome: ratelimit.Allowed, States: states(0, at(61*time.Second)),
		}},
		{"one too many", 4 * time.Second, 1, ratelimit.Decision{
			Outcome: ratelimit.Limited, States: states(0, at(61*time.Second)), RetryAfter: 6 * time.Second,
		}},
		{"two with only one back", 9 * time.Second, 2, ratelimit.Decision{
			Outcome: ratelimit.Limited, States: states(1, at(61*time.Second)), RetryAfter: 7 * time.Second,
		}},
		{"the one that is back", 0, 1, ratelimit.Decision{
			Outcome: ratelimit.Allowed, States: states(0, at(71*time.Second)),
		}},
		{"all of it, long after", time.Hour, 6, ratelimit.Decision{
			Outcome: ratelimit.Allowed, States: states(0, at(time.Hour+74*time.Second)),
		}},
	} {
		f.advance(step.advance)
		step.want.Plan, step.want.Cost, step.want.Time, step.want.StrikesLeft = p, step.cost, f.clock.Now().UnixNano(), -1
		got := f.take("a", p, step.cost)
		if over := got.RetryAfter - step.want.RetryAfter; over > 0 && over < 2*time.Microsecond {
			got.RetryAfter = step.want.RetryAfter // to be over by the resolution of the clock is the promise
		}
		if diff := cmp.Diff(&step.want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}

func states(remaining, reset int64) [4]ratelimit.State {
	return [4]ratelimit.State{{Remaining: remaining, Reset: reset}}
}

func TestRemainingIsExact(t *testing.T) {
	f := newFixture(t, redisrate.Options{})
	for limit := int64(2); limit < 10_000; limit += 1 + limit/50 {
		for _, q := range []ratelimit.Quota{ratelimit.PerSecond(limit), ratelimit.PerMinute(limit), ratelimit.PerDay(limit)} {
			subject := fmt.Sprint(q)
			if got := f.take(subject, plan(q), 1).Remaining(); got != limit-1 {
				t.Errorf("%v: %d remaining after the first, want %d", q, got, limit-1)
			}
			if got := f.take(subject, plan(q), limit/2).Remaining(); got != limit-1-limit/2 {
				t.Errorf("%v: %d remaining after %d more, want %d", q, got, limit/2, limit-1-limit/2)
			}
		}
	}
}

func TestClientThatWaitsIsAdmitted(t *testing.T) {
	f := newFixture(t, redisrate.Options{})
	for limit := int64(1); limit < 5000; limit += 1 + limit/10 {
		q := ratelimit.PerHour(limit)
		for cost := int64(1); cost <= limit; cost += 1 + limit/3 {
			f.advance(123_456 * time.Microsecond)
			subject := fmt.Sprint(limit, cost)
			f.take(subject, plan(q), limit)
			d := f.take(subject, plan(q), cost)
			wait := (d.RetryAfter + time.Microsecond - 1).Truncate(time.Microsecond) // all that the server's clock can tell
			f.advance(wait - 3*time.Microsecond)
			if d := f.take(subject, plan(q), cost); d.Allowed() {
				t.Errorf("%v: %d units were admitted before RetryAfter had passed", q, cost)
			}
			f.advance(time.Microsecond)
			d = f.take(subject, plan(q), cost) // by a hair, one way or the other
			if !d.Allowed() && d.Remaining() >= cost {
				t.Errorf("%v: %d units were limited with %d remaining", q, cost, d.Remaining())
			}
			if d.Allowed() {
				continue
			}
			f.advance(2 * time.Microsecond)
			if d := f.take(subject, plan(q), cost); !d.Allowed() {
				t.Errorf("%v: after RetryAfter %d units have to wait another %v", q, cost, d.RetryAfter)
			}
		}
	}
}

// The documentation of Limiter has this number.
func TestFirstMinute(t *testing.T) {
	f := newFixture(t, redisrate.Options{})
	p := plan(ratelimit.PerMinute(1000))
	admitted := 0
	for f.take("a", p, 1).Allowed() {
		admitted++
	}
	for range 60_000/30 - 1 {
		f.advance(30 * time.Millisecond)
		if f.take("a", p, 1).Allowed() {
			admitted++
		}
	}
	if admitted != 1999 {
		t.Errorf("1000/minute admitted %d in its first minute, want 1999", admitted)
	}
}

func TestWindowsAreApart(t *testing.T) {
	f := newFixture(t, redisrate.Options{Prefix: "shop"})
	minute, hour := plan(ratelimit.PerMinute(2)), plan(ratelimit.PerHour(100))
	for i := range int64(2) {
		if got := f.take("a", minute, 1).Remaining(); got != 1-i {
			t.Errorf("minute: %d remaining, want %d", got, 1-i)
		}
		if got := f.take("a", hour, 1).Remaining(); got != 99-i {
			t.Errorf("hour: %d remaining, want %d", got, 99-i)
		}
	}
	want := []string{"rate:shop:{a}:3600", "rate:shop:{a}:60"}
	if diff := cmp.Diff(want, f.server.Keys()); diff != "" {
		t.Errorf("keys (-want +got):\n%s", diff)
	}
	f.advance(time.Hour)
	if keys := f.server.Keys(); len(keys) != 0 {
		t.Errorf("keys that never expire: %q", keys)
	}
}

func TestLimitChangeKeepsTheShare(t *testing.T) {
	f := newFixture(t, redisrate.Options{})
	f.take("a", plan(ratelimit.PerMinute(60)), 30)
	if got := f.peek("a", plan(ratelimit.PerMinute(300))).Remaining(); got != 150 {
		t.Errorf("half of 60/minute was used: %d of 300/minute remain, want 150", got)
	}
}

func TestPenaltyIsIgnored(t *testing.T) {
	f := newFixture(t, redisrate.Options{})
	p := ratelimit.MustPlan("strict", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1))
	f.take("a", p, 1)
	f.advance(time.Second)
	for range 50 {
		if d := f.take("a", p, 1); d.Outcome != ratelimit.Limited || d.StrikesLeft != -1 {
			t.Fatalf("got %v with %d strikes left, want limited with -1", d.Outcome, d.StrikesLeft)
		}
	}
}
