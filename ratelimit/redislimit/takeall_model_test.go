package redislimit

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Calls about the same charges share a decision, however many groups a batch has.
func TestBatchSharesGroupsOfTakes(t *testing.T) {
	plan, other := groupPlans[0], groupPlans[1]
	take := func(first, second string, plan *ratelimit.Plan, cost int64) operation {
		return operation{code: opTakeAll, subject: first, takes: newTakes([]ratelimit.Charge{
			{Subject: first, Plan: plan, Cost: 1}, {Subject: second, Plan: plan, Cost: cost},
		})}
	}
	b := new(batch)
	for range 2 {
		for i := range 30 { // more than are found without a map
			b.add(take("all", fmt.Sprint(i), plan, 1), newCall())
		}
	}
	if len(b.groups) != 30 || b.groups[29].requests != 2 {
		t.Fatalf("30 pairs, each of them twice, made %d groups, want 30", len(b.groups))
	}
	b.add(take("all", "7", other, 1), newCall())
	b.add(take("all", "7", plan, 2), newCall())
	b.add(take("7", "all", plan, 1), newCall())
	same := take("all", "30", plan, 1)
	same.takes.hash = b.groups[7].takes.hash // of other charges
	b.add(same, newCall())
	if len(b.groups) != 34 {
		t.Fatalf("4 groups of other charges made %d groups more, want 4", len(b.groups)-30)
	}
}

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
				_, err := l.Take(context.Background(), "shared", test.before, 1)
				must(t, err)
			}
			b := new(batch)
			for i, plan := range test.plans {
				b.join(operation{code: opTakeAll, subject: "shared", takes: newTakes([]ratelimit.Charge{
					{Subject: "shared", Plan: plan, Cost: 1}, {Subject: []string{"a", "b"}[i], Plan: minute, Cost: 1},
				})}, 1)
			}
			must(t, b.exchange(l))
			if ttl := m.TTL(Key(l, "shared")); ttl < test.want || ttl > test.want+10*time.Second {
				t.Errorf("the key lasts %v, want a little longer than its windows, which end after %v", ttl, test.want)
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
	must(t, err)
	settle(t, l, start)
	return l, m
}
