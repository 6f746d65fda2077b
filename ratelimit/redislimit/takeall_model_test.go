package redislimit

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
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

// Groups of takes that share calls of the script, and subjects, are answered as if they
// had asked the model one after the other at that instant, in some order.
func TestGroupsThatShareSubjects(t *testing.T) {
	for seed := range race.Fewer(2) {
		testGroupsThatShareSubjects(t, uint64(seed))
	}
}

func testGroupsThatShareSubjects(t *testing.T, seed uint64) {
	t.Helper()
	start := time.Date(2026, time.March, 30, 23, 59, 0, 0, time.UTC).AddDate(0, 0, int(seed%2))
	l, m := serverAt(t, start)
	clock := ratelimittest.NewClock(start)
	r := rand.New(rand.NewPCG(seed, 2))
	type past []func(enginetest.Model) // all that was done, clock included
	pasts := []past{nil}               // those that explain all answers
	var log []string
	for range 20 {
		now := clock.Now().Add(time.Duration(r.IntN(4000)-500) * time.Millisecond)
		m.SetTime(now)
		for i, p := range pasts {
			pasts[i] = append(p[:len(p):len(p)], func(enginetest.Model) { clock.Set(now) })
		}
		clock.Set(now)
		b := new(batch)
		for range 1 + r.IntN(3) {
			charges := make([]ratelimit.Charge, 1+r.IntN(3))
			for k, subject := range r.Perm(4)[:len(charges)] {
				charges[k] = ratelimit.Charge{Subject: fmt.Sprint(subject), Plan: groupPlans[r.IntN(len(groupPlans))], Cost: 1 + r.Int64N(2)}
				if r.IntN(3) > 0 {
					charges[k].Plan = groupPlans[subject]
				}
			}
			for range 1 + r.IntN(3) {
				b.add(operation{code: opTakeAll, subject: charges[0].Subject, takes: newTakes(charges)}, newCall())
			}
			log = append(log, fmt.Sprint(now.Format("15:04:05.000"), charges))
		}
		groups := b.groups
		must(t, b.exchange(l))
		var explaining []past
		var diff string
		for _, p := range pasts {
			for order := range permutations(len(groups)) {
				model := enginetest.NewModel(clock.Now)
				for _, f := range p {
					f(model)
				}
				next := p[:len(p):len(p)]
				for _, i := range order {
					if diff = groups[i].diff(t, model); diff != "" {
						break
					}
					next = append(next, func(m enginetest.Model) { groups[i].ask(m) })
				}
				if diff == "" {
					explaining = append(explaining, next)
				}
			}
		}
		if len(explaining) == 0 {
			t.Fatalf("seed %d: no order of the last %d groups explains their answers; in the one tried last, the engine (+) and the model (-) differ after\n%s\n%s",
				seed, len(groups), strings.Join(log[max(len(log)-12, 0):], "\n"), diff)
		}
		r.Shuffle(len(explaining), func(i, k int) { explaining[i], explaining[k] = explaining[k], explaining[i] })
		pasts = explaining[:min(len(explaining), 12)]
	}
}

// permutations yields all orders of the numbers below n.
func permutations(n int) func(yield func([]int) bool) {
	return func(yield func([]int) bool) {
		var extend func(order []int) bool
		extend = func(order []int) bool {
			if len(order) == n {
				return yield(order)
			}
		next:
			for i := range n {
				for _, k := range order {
					if k == i {
						continue next
					}
				}
				if !extend(append(order[:len(order):len(order)], i)) {
					return false
				}
			}
			return true
		}
		extend(nil)
	}
}
