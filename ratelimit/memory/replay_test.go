package memory_test

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// What was saved last counts, even if it has expired and what was saved before has not.
func TestExpiredRecordReplacesAnEarlierOne(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	var file []memory.Record
	save := func() {
		t.Helper()
		if err := l.Save(func(r []memory.Record) error { file = append(file, r...); return nil }); err != nil {
			t.Fatal(err)
		}
	}
	day := ratelimit.MustPlan("day", ratelimit.Penalty{}, ratelimit.PerDay(10).Smooth(10))
	decision := take(t, l, "a", day)
	save()
	if err := l.Adjust(ctx, "a", &decision, 0, ""); err != nil {
		t.Fatal(err)
	}
	take(t, l, "a", ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10)))
	save()
	clock.Set(noon.Add(5 * time.Minute))
	again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret()})
	if err := again.Load(file); err != nil {
		t.Fatal(err)
	}
	if d := take(t, again, "a", day); d.Remaining() != 9 {
		t.Errorf("%d of the day remain after a refund and a restart, want 9", d.Remaining())
	}
}

// Whatever happened to subjects, they continue after a restart where they were, from the
// last record of each key and from all records in order.
func TestRestartsChangeNothing(t *testing.T) {
	race.Skip(t)
	plans := []*ratelimit.Plan{
		ratelimit.MustPlan("day", ratelimit.Penalty{}, ratelimit.PerDay(10)),
		ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10)),
		statePlan,
	}
	subjects := []string{"a", "b", "c"}
	for seed := range uint64(1000) {
		random := rand.New(rand.NewPCG(seed, 0))
		clock := enginetest.NewClock(noon)
		l := newLimiter(t, memory.Options{Now: clock.Now})
		last := disk{}
		var all []memory.Record
		save := func() {
			if err := l.Save(func(r []memory.Record) error { all = append(all, r...); return last.write(r) }); err != nil {
				t.Fatal(err)
			}
		}
		var steps []string
		now, refund := noon, func() {}
		for range 60 {
			name, plan := subjects[random.IntN(len(subjects))], plans[random.IntN(len(plans))]
			step := random.IntN(9)
			steps = append(steps, fmt.Sprint(step, name, plan.Name()))
			switch step {
			case 0, 1, 2:
				for range []int{1, 1, 2, 13}[random.IntN(4)] {
					decision, before := take(t, l, name, plan), refund
					refund = func() { before(); _ = l.Adjust(ctx, name, &decision, 0, "") }
				}
			case 3:
				refund()
				refund = func() {}
			case 4:
				_ = l.Ban(ctx, name, time.Duration(1+random.IntN(3600))*time.Second)
			case 5:
				_, _ = l.Unban(ctx, name)
			case 6:
				_ = l.Reset(ctx, name)
			case 7:
				now = now.Add(time.Duration(random.IntN(600)-30) * time.Second)
				clock.Set(now)
			case 8:
				save()
			}
		}
		save()
		clock.Set(now.Add(time.Duration(random.IntN(600)) * time.Second))
		for what, file := range map[string][]memory.Record{"the last records": slices.Collect(maps.Values(last)), "all records": all} {
			again := newLimiter(t, memory.Options{Now: clock.Now, Secret: l.Secret()})
			if err := again.Load(file); err != nil {
				t.Fatal(err)
			}
			for _, name := range subjects {
				for _, plan := range plans {
					want, _ := l.Peek(ctx, name, plan)
					got, err := again.Peek(ctx, name, plan)
					if diff := cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b })); err != nil || diff != "" {
						t.Fatalf("seed %d: %s with plan %s from %s: %v (-before +after)\n%s\nafter the steps %v", seed, name, plan.Name(), what, err, diff, steps)
					}
				}
			}
		}
	}
}
