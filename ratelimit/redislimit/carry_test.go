package redislimit_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Usage is kept in four bytes, and from 2³² units on in eight. A request carries from each
// byte into the next, in each window by itself, up to the last unit of the limit.
func TestUsageCarries(t *testing.T) {
	m, c := mini(t)
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(now)
	l := newLimiter(t, c)
	const most = fixedwindow.MaxUnits
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(most), ratelimit.PerDay(most))
	before := []int64{1, 255, 1<<16 - 1, 1<<24 - 1, 1<<32 - 4, 1<<32 - 2, 1 << 32, 5<<32 - 1, most - 2}
	for _, minute := range before {
		for _, day := range before {
			subject := fmt.Sprint(minute, " and ", day)
			must(t, addUsage(l, "", subject, plan, [4]int64{minute, day}, now))
			for i := range int64(3) {
				d, err := l.Take(ctx, subject, plan, 1)
				if err != nil {
					t.Fatalf("request %d after usage of %s: %v", i+1, subject, err)
				}
				want := max(minute, day)+i+1 <= most
				n := min(i+1, most-max(minute, day))
				if d.Allowed() != want || d.States[0].Remaining != most-minute-n || d.States[1].Remaining != most-day-n {
					t.Errorf("request %d after usage of %s: %v with %d and %d left, want allowed: %v with %d and %d", i+1, subject,
						d.Outcome, d.States[0].Remaining, d.States[1].Remaining, want, most-minute-n, most-day-n)
				}
			}
		}
	}
}

// However often a subject is banned, its record can be written: the level stops at
// 255, and the time at which the level is forgiven where four bytes end, in 2106.
func TestManyBansOfOneSubject(t *testing.T) {
	m, c := mini(t)
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	l := newLimiter(t, c)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{
		Strikes: 1, Decay: time.Hour, Ban: time.Second, Growth: 1, Max: time.Second, Forgive: fixedwindow.MaxLength,
	}, ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	for i := range 260 {
		now = now.Add(2 * time.Second)
		m.SetTime(now)
		for outcome := ratelimit.Allowed; outcome != ratelimit.Banned; {
			d, err := l.Take(ctx, "a", plan, 1)
			if err != nil {
				t.Fatalf("ban %d: %v", i+1, err)
			}
			outcome = d.Outcome
		}
		if i > 0 && i < 253 { // a list takes some time
			continue
		}
		bans, err := l.Bans(ctx)
		if want := min(i+1, 255); err != nil || len(bans) != 1 || bans[0].Level != want {
			t.Fatalf("ban %d: %v, %v, want one of level %d", i+1, bans, err, want)
		}
	}
}
