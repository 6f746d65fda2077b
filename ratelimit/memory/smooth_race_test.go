package memory_test

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Charges of one bucket by many goroutines, under plans with different limits, alone and
// in groups, beside everything that moves slots, are in some order: each begins where the
// one before ended.
func TestSmoothChargesFollowEachOther(t *testing.T) {
	smooth := func(limit, burst int64) ratelimit.Quota {
		return ratelimit.Quota{Limit: limit, Window: time.Hour}.Smooth(burst)
	}
	plans := []*ratelimit.Plan{
		ratelimit.MustPlan("one", ratelimit.Penalty{}, smooth(40_000, 30_000)),
		ratelimit.MustPlan("mixed", ratelimit.Penalty{}, smooth(50_000, 50_000), ratelimit.PerMinute(1<<30)),
		ratelimit.MustPlan("two", ratelimit.Penalty{}, smooth(30_000, 20_000), ratelimit.PerDay(1<<30).Smooth(1<<30)),
	}
	var now atomic.Int64
	now.Store(noon.UnixNano())
	l := newLimiter(t, memory.Options{MaxSubjects: 64, Now: func() time.Time { return time.Unix(0, now.Load()) }})
	if _, err := l.Take(ctx, "hot", plans[1], 25_000); err != nil { // half of the burst, so that it is held
		t.Fatal(err)
	}
	begin, _ := l.Peek(ctx, "hot", plans[1])

	const callers, calls = 8, 2000
	var all [callers][]ratelimit.Decision
	var done sync.WaitGroup
	for c := range callers {
		done.Go(func() {
			r := rand.New(rand.NewPCG(uint64(c), 1))
			for n := range calls {
				plan, cost := plans[r.IntN(len(plans))], 1+r.Int64N(3)
				d := make([]ratelimit.Decision, 2)
				switch r.IntN(16) {
				case 0:
					now.Add(r.Int64N(int64(2*time.Second)) - int64(time.Second)/2)
				case 1:
					_ = l.Save(func([]memory.Record) error { return nil })
					continue
				case 2:
					_, _ = l.Peek(ctx, "hot", plan)
					continue
				case 3:
					_, _ = l.Take(ctx, fmt.Sprint("new ", c, n), plan, 1)
					continue
				case 4, 5:
					_ = l.TakeAll(ctx, []ratelimit.Charge{
						{Subject: "hot", Plan: plan, Cost: cost}, {Subject: "group", Plan: plans[1], Cost: 1}}, d)
				case 6:
					_ = l.TakeAll(ctx, []ratelimit.Charge{
						{Subject: "group", Plan: plans[1], Cost: 1}, {Subject: "hot", Plan: plan, Cost: cost}}, d)
					d[0] = d[1]
				default:
					d[0], _ = l.Take(ctx, "hot", plan, cost)
				}
				if d[0].Allowed() {
					all[c] = append(all[c], d[0])
				}
			}
		})
	}
	done.Wait()

	charged := slices.Concat(all[:]...)
	t.Log(len(charged), l.Stats())
	quota := func(d *ratelimit.Decision) (i int) { // of the hour
		for engine.Of(d.Plan).Kind(i) != -time.Hour {
			i++
		}
		return i
	}
	full := func(d *ratelimit.Decision) gcra.Time {
		return gcra.Of(d.States[quota(d)].Reset, d.Receipt.Rounded[quota(d)])
	}
	slices.SortFunc(charged, func(a, b ratelimit.Decision) int { return cmp.Compare(full(&a), full(&b)) })
	before := full(&begin)
	for i := range charged {
		d := &charged[i]
		want := (*plan.Plan)(d.Plan).Bucket(quota(d)).Charged(max(before, gcra.At(d.Time)), d.Cost)
		if full(d) != want {
			t.Fatalf("the charge %d of %d is not made where the one before ended: the bucket is full at %d, want %d", i, len(charged), full(d), want)
		}
		before = want
	}
}
