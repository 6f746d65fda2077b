package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A key lasts as long as the windows, the buckets and the record of its subject: as the
// record also when a request was admitted after the ban in windows that end sooner.
func TestKeyOutlivesWhatItHolds(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	penalty := ratelimit.Penalty{Strikes: 1, Decay: time.Hour, Ban: 10 * time.Second, Growth: 1, Max: 10 * time.Second, Forgive: 5 * time.Hour}
	patient := penalty
	patient.Strikes = 9
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan { return ratelimit.MustPlan("", penalty, quotas...) }
	minute, two := plan(ratelimit.PerMinute(1)), plan(ratelimit.PerMinute(1), ratelimit.Quota{Limit: 1000, Window: 2 * time.Minute})
	minuteAndHour := ratelimit.MustPlan("", patient, ratelimit.PerMinute(1), ratelimit.PerHour(9))
	withBucket := ratelimit.MustPlan("", patient, ratelimit.PerMinute(1), ratelimit.PerHour(9), ratelimit.Quota{Limit: 9, Window: 10 * time.Second}.Smooth(9))
	smooth, buckets := plan(ratelimit.PerMinute(2).Smooth(1)), plan(ratelimit.PerMinute(60).Smooth(1), ratelimit.PerHour(2).Smooth(2))
	const allowed, limited = ratelimit.Allowed, ratelimit.Limited
	for name, test := range map[string]struct {
		before  *ratelimit.Plan
		seconds []int // after the start, of requests under before
		plan    *ratelimit.Plan
		at      int // the second of the last request
		want    ratelimit.Outcome
		until   time.Duration
	}{
		"a bucket":                                      {nil, nil, plan(ratelimit.PerHour(2).Smooth(1)), 1, allowed, time.Second + 30*time.Minute},
		"a window and a bucket":                         {nil, nil, plan(ratelimit.PerMinute(2).Smooth(1), ratelimit.PerHour(9)), 1, allowed, time.Hour},
		"two buckets":                                   {buckets, []int{1}, buckets, 3, allowed, time.Second + time.Hour},
		"buckets, a shorter later":                      {nil, nil, plan(ratelimit.PerMinute(2).Smooth(1), ratelimit.PerHour(3600).Smooth(9)), 1, allowed, 31 * time.Second},
		"a ban that was, and a bucket":                  {smooth, []int{1, 2, 3}, smooth, 62, allowed, 13*time.Second + 5*time.Hour},
		"a ban that was":                                {minute, []int{1, 2, 3}, minute, 60, allowed, 5 * time.Hour},
		"a ban that was, a minute later":                {two, []int{30, 30, 30, 30}, two, 90, allowed, 30*time.Second + 5*time.Hour},
		"a ban that was, two minutes later":             {two, []int{30, 30, 30, 30, 90}, two, 150, allowed, 30*time.Second + 5*time.Hour},
		"a ban that was, three minutes later":           {two, []int{30, 30, 30, 30, 90, 150}, two, 210, allowed, 30*time.Second + 5*time.Hour},
		"a strike in a longer window":                   {minute, []int{1}, minuteAndHour, 2, limited, time.Hour},
		"a strike in a longer window and a bucket":      {minute, []int{1}, withBucket, 2, limited, time.Hour},
		"a strike in a longer window, after a ban":      {minute, []int{1, 2, 3}, minuteAndHour, 20, limited, 5 * time.Hour},
		"a strike in the same window, after an earlier": {minute, []int{1, 2}, minuteAndHour, 3, limited, time.Hour},
	} {
		for group, take := range map[string]func(*redislimit.Limiter, *ratelimit.Plan) (ratelimit.Decision, error){
			"": func(l *redislimit.Limiter, plan *ratelimit.Plan) (ratelimit.Decision, error) {
				return l.Take(ctx, "a", plan, 1)
			},
			", in a group": func(l *redislimit.Limiter, plan *ratelimit.Plan) (ratelimit.Decision, error) {
				return takeGroup(l, "a", plan, lasting(100))
			},
		} {
			t.Run(name+group, func(t *testing.T) {
				m, c := mini(t)
				l := newLimiter(t, c)
				at := func(second int, plan *ratelimit.Plan) ratelimit.Decision {
					m.SetTime(start.Add(time.Duration(second) * time.Second))
					d, err := take(l, plan)
					must(t, err)
					return d
				}
				for _, second := range test.seconds {
					at(second, test.before)
				}
				if d := at(test.at, test.plan); d.Outcome != test.want {
					t.Fatalf("the last request is %v, want %v", d.Outcome, test.want)
				}
				if ttl, want := m.TTL(redislimit.Key(l, "a")), test.until-time.Duration(test.at)*time.Second; ttl < want {
					t.Errorf("the key lasts %v, want at least %v", ttl, want)
				}
			})
		}
	}
}

// takeGroup has a subject take a unit, together with another one under a plan of its own.
func takeGroup(l *redislimit.Limiter, subject string, plan, other *ratelimit.Plan) (ratelimit.Decision, error) {
	decisions := make([]ratelimit.Decision, 2)
	err := l.TakeAll(ctx, []ratelimit.Charge{{Subject: "other", Plan: other, Cost: 1}, {Subject: subject, Plan: plan, Cost: 1}}, decisions)
	return decisions[1], err
}

// The strikes of each subject of a call count until its own bucket is full.
func TestSmoothStrikesOfOneCall(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		testSmoothStrikesOfOneCall(t, func(l *redislimit.Limiter, plan *ratelimit.Plan) error {
			return redislimit.TakeAll(l, plan)([]string{"a", "b"})
		})
	})
	t.Run("in a group", func(t *testing.T) {
		testSmoothStrikesOfOneCall(t, func(l *redislimit.Limiter, plan *ratelimit.Plan) error {
			charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "b", Plan: plan, Cost: 1}}
			return l.TakeAll(ctx, charges, make([]ratelimit.Decision, 2))
		})
	})
}

func testSmoothStrikesOfOneCall(t *testing.T, strike func(*redislimit.Limiter, *ratelimit.Plan) error) {
	t.Helper()
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	m, c := mini(t)
	l := newLimiter(t, c)
	penalty := ratelimit.Penalty{Strikes: 9, Decay: 24 * time.Hour, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Minute}
	plan := ratelimit.MustPlan("", penalty, ratelimit.PerHour(4).Smooth(4))
	at := func(second int) { m.SetTime(start.Add(time.Duration(second) * time.Second)) }
	for subject, second := range map[string]int{"a": 1, "b": 600} { // full at 3601 and 4200
		at(second)
		if d, err := l.Take(ctx, subject, plan, 4); err != nil || !d.Allowed() {
			t.Fatal(d.Outcome, err)
		}
	}
	at(700)
	must(t, strike(l, plan))
	for _, test := range []struct {
		second  int
		subject string
		want    int
	}{{3600, "a", 8}, {3601, "a", 9}, {4199, "b", 8}, {4200, "b", 9}} {
		at(test.second)
		if d, err := l.Peek(ctx, test.subject, plan); err != nil || d.StrikesLeft != test.want {
			t.Errorf("after %d seconds %s has %d strikes left, %v, want %d", test.second, test.subject, d.StrikesLeft, err, test.want)
		}
	}
}
