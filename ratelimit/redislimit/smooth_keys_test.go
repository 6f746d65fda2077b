package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// The key of a subject with smooth quotas lasts as long as its windows, its buckets and
// its record.
func TestSmoothKeyOutlivesWhatItHolds(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	penalty := ratelimit.Penalty{Strikes: 1, Decay: time.Hour, Ban: 10 * time.Second, Growth: 1, Max: 10 * time.Second, Forgive: 5 * time.Hour}
	for name, test := range map[string]struct {
		plan    *ratelimit.Plan
		seconds []int // after the start, of requests; the last one is admitted
		until   time.Duration
	}{
		"a bucket":                 {ratelimit.MustPlan("", penalty, ratelimit.PerHour(2).Smooth(1)), []int{1}, time.Second + 30*time.Minute},
		"a window and a bucket":    {ratelimit.MustPlan("", penalty, ratelimit.PerMinute(2).Smooth(1), ratelimit.PerHour(9)), []int{1}, time.Hour},
		"two buckets":              {ratelimit.MustPlan("", penalty, ratelimit.PerMinute(60).Smooth(1), ratelimit.PerHour(2).Smooth(2)), []int{1, 3}, time.Second + time.Hour},
		"buckets, a shorter later": {ratelimit.MustPlan("", penalty, ratelimit.PerMinute(2).Smooth(1), ratelimit.PerHour(3600).Smooth(9)), []int{1}, 31 * time.Second},
		"a ban that was":           {ratelimit.MustPlan("", penalty, ratelimit.PerMinute(2).Smooth(1)), []int{1, 2, 3, 62}, 13*time.Second + 5*time.Hour},
	} {
		for group, take := range map[string]func(*redislimit.Limiter) (ratelimit.Decision, error){
			"": func(l *redislimit.Limiter) (ratelimit.Decision, error) { return l.Take(ctx, "a", test.plan, 1) },
			", in a group": func(l *redislimit.Limiter) (ratelimit.Decision, error) {
				return takeGroup(l, "a", test.plan, lasting(100))
			},
		} {
			t.Run(name+group, func(t *testing.T) {
				m, c := mini(t)
				l := newLimiter(t, c)
				var d ratelimit.Decision
				for _, second := range test.seconds {
					m.SetTime(start.Add(time.Duration(second) * time.Second))
					var err error
					if d, err = take(l); err != nil {
						t.Fatal(err)
					}
				}
				if !d.Allowed() {
					t.Fatalf("the last request is %v, want allowed", d.Outcome)
				}
				at := time.Duration(test.seconds[len(test.seconds)-1]) * time.Second
				if ttl, want := m.TTL(redislimit.Key(l, "a")), test.until-at; ttl < want {
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
	if err := strike(l, plan); err != nil {
		t.Fatal(err)
	}
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
