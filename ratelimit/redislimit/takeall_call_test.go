package redislimit

import (
	"context"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A key that groups of one call write one after the other lasts as long as the windows
// that any of them has opened.
func TestKeyThatOneCallWritesTwice(t *testing.T) {
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	minuteAndHour := ratelimit.MustPlan("minute and hour", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerHour(10))
	for name, test := range map[string]struct {
		before *ratelimit.Plan // of a request before the call, or nil
		plans  [2]*ratelimit.Plan
		want   time.Duration
	}{
		"a new key, and the same windows":      {plans: [2]*ratelimit.Plan{minute, minute}, want: 30 * time.Second},
		"a new key, and a longer window":       {plans: [2]*ratelimit.Plan{minute, minuteAndHour}, want: 59*time.Minute + 30*time.Second},
		"open windows, and then a longer one":  {minute, [2]*ratelimit.Plan{minute, minuteAndHour}, 59*time.Minute + 30*time.Second},
		"a longer window, and the same ones":   {minute, [2]*ratelimit.Plan{minuteAndHour, minuteAndHour}, 59*time.Minute + 30*time.Second},
		"a longer window, and then a part":     {minute, [2]*ratelimit.Plan{minuteAndHour, minute}, 59*time.Minute + 30*time.Second},
		"a longer window, open before, twice":  {minuteAndHour, [2]*ratelimit.Plan{minuteAndHour, minuteAndHour}, 59*time.Minute + 30*time.Second},
		"a longer window, open before, a part": {minuteAndHour, [2]*ratelimit.Plan{minute, minuteAndHour}, 59*time.Minute + 30*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			l, m := serverAt(t, time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC))
			if test.before != nil {
				if _, err := l.Take(context.Background(), "shared", test.before, 1); err != nil {
					t.Fatal(err)
				}
			}
			b := new(batch)
			for i, plan := range test.plans {
				b.join(operation{code: opTakeAll, subject: "shared", takes: newTakes([]ratelimit.Charge{
					{Subject: "shared", Plan: plan, Cost: 1}, {Subject: []string{"a", "b"}[i], Plan: minute, Cost: 1},
				})}, 1)
			}
			if err := b.exchange(l); err != nil {
				t.Fatal(err)
			}
			if ttl := m.TTL(Key(l, "shared")); ttl < test.want || ttl > test.want+10*time.Second {
				t.Errorf("the key lasts %v, want a little longer than its windows, which end after %v", ttl, test.want)
			}
		})
	}
}

// The strikes in a record that has expired do not count, also of a subject that is spared.
func TestSparedSubjectWithExpiredRecord(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	l, m := serverAt(t, start)
	penalty := ratelimit.Penalty{Strikes: 10, Decay: time.Hour, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Minute}
	plan, larger := ratelimit.MustPlan("", penalty, ratelimit.PerMinute(2)), ratelimit.MustPlan("", penalty, ratelimit.PerMinute(10))
	ctx := context.Background()
	for _, second := range []int{10, 11, 12, 13} { // two strikes, in a record that expires at 60
		m.SetTime(start.Add(time.Duration(second) * time.Second))
		if _, err := l.Take(ctx, "a", plan, 1); err != nil {
			t.Fatal(err)
		}
	}
	// Another process, whose clock is ahead, opens the next window.
	ahead := engine.Uncounted(plan, 0, start.Add(61*time.Second))
	if err := l.Adjust(ctx, "a", &ahead, 1, ""); err != nil {
		t.Fatal(err)
	}
	if err := l.Ban(ctx, "b", time.Hour); err != nil {
		t.Fatal(err)
	}
	m.SetTime(start.Add(60*time.Second + 250*time.Millisecond))
	decisions := make([]ratelimit.Decision, 2)
	charges := []ratelimit.Charge{{Subject: "a", Plan: larger, Cost: 1}, {Subject: "b", Plan: plan, Cost: 1}}
	if err := l.TakeAll(ctx, charges, decisions); err != nil {
		t.Fatal(err)
	}
	if d := decisions[0]; d.Outcome != ratelimit.Spared || d.StrikesLeft != 10 || d.Remaining() != 7 {
		t.Errorf("%v with %d strikes and %d units left, want spared with 10 and 7", d.Outcome, d.StrikesLeft, d.Remaining())
	}
}

// A key that a group writes lasts as long as its windows, and as its record.
func TestKeyOfGroupOutlivesWhatItHolds(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	penalty := ratelimit.Penalty{Strikes: 1, Decay: time.Hour, Ban: 10 * time.Second, Growth: 1, Max: 10 * time.Second, Forgive: 5 * time.Hour}
	patient := penalty
	patient.Strikes = 9
	minute := ratelimit.MustPlan("minute", penalty, ratelimit.PerMinute(1))
	minuteAndHour := ratelimit.MustPlan("minute and hour", patient, ratelimit.PerMinute(1), ratelimit.PerHour(9))
	smooth := ratelimit.MustPlan("smooth", patient, ratelimit.PerMinute(1), ratelimit.PerHour(9), ratelimit.Quota{Limit: 9, Window: 10 * time.Second}.Smooth(9))
	for name, test := range map[string]struct {
		before []int // seconds after the start, of requests under minute
		at     int
		plan   *ratelimit.Plan
		want   ratelimit.Outcome
		until  time.Duration
	}{
		"an admission after a ban":                      {[]int{1, 2, 3}, 60, minute, ratelimit.Allowed, 5 * time.Hour},
		"a strike in a longer window":                   {[]int{1}, 2, minuteAndHour, ratelimit.Limited, time.Hour},
		"a strike in a longer window and a bucket":      {[]int{1}, 2, smooth, ratelimit.Limited, time.Hour},
		"a strike in a longer window, after a ban":      {[]int{1, 2, 3}, 20, minuteAndHour, ratelimit.Limited, 5 * time.Hour},
		"a strike in the same window, after an earlier": {[]int{1, 2}, 3, minuteAndHour, ratelimit.Limited, time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			l, m := serverAt(t, start)
			at := func(second int) { m.SetTime(start.Add(time.Duration(second) * time.Second)) }
			for _, second := range test.before {
				at(second)
				if _, err := l.Take(context.Background(), "a", minute, 1); err != nil {
					t.Fatal(err)
				}
			}
			at(test.at)
			decisions := make([]ratelimit.Decision, 2)
			charges := []ratelimit.Charge{{Subject: "a", Plan: test.plan, Cost: 1}, {Subject: "b", Plan: minuteAndHour, Cost: 1}}
			if err := l.TakeAll(context.Background(), charges, decisions); err != nil || decisions[0].Outcome != test.want {
				t.Fatalf("%v, %v, want %v", decisions[0].Outcome, err, test.want)
			}
			if ttl, want := m.TTL(Key(l, "a")), test.until-time.Duration(test.at)*time.Second; ttl < want {
				t.Errorf("the key lasts %v, want at least %v", ttl, want)
			}
		})
	}
}

// serverAt returns an engine whose server has the time start.
func serverAt(t *testing.T, start time.Time) (*Limiter, *miniredis.Miniredis) {
	t.Helper()
	m := miniredis.RunT(t)
	m.SetTime(start)
	client := redis.NewClient(&redis.Options{Addr: m.Addr(), ReadTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	l, err := New(client, Options{})
	if err != nil {
		t.Fatal(err)
	}
	settle(t, l, start)
	return l, m
}
