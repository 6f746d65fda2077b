package memory

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// Once a request met a ban by hand, so does every later one, though Ban has not
// returned yet.
func TestBanIsSeenByAllFromThenOn(t *testing.T) {
	subjects := race.Fewer(100_000)
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, Options{Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerDay(1_000_000))
	for i := range subjects {
		take(t, l, fmt.Sprint(i), plan)
	}
	var current atomic.Int64 // the subject that is being banned
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := range subjects {
			current.Store(int64(i))
			if err := l.Ban(ctx, fmt.Sprint(i), time.Hour, ""); err != nil {
				t.Error(err)
			}
		}
		current.Store(int64(subjects))
	})
	for i := current.Load(); i < int64(subjects); i = current.Load() {
		name := fmt.Sprint(i)
		d, err := l.Take(ctx, name, plan, 1_000_000) // too much
		must(t, err)
		if after := take(t, l, name, plan); d.Outcome == ratelimit.Banned && after.Outcome != ratelimit.Banned {
			t.Fatalf("subject %d: banned, and then %v", i, after.Outcome)
		}
	}
	wg.Wait()
}

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
	l := newLimiter(t, Options{MaxSubjects: 64, Now: func() time.Time { return time.Unix(0, now.Load()) }})
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
					_ = l.Save(func([]Record) error { return nil })
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
		for of(d.Plan).Kind(i) != -time.Hour {
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
		want := of(d.Plan).Bucket(quota(d)).Charged(max(before, gcra.At(d.Time)), d.Cost)
		if full(d) != want {
			t.Fatalf("the charge %d of %d is not made where the one before ended: the bucket is full at %d, want %d", i, len(charged), full(d), want)
		}
		before = want
	}
}

// Charges of groups that share subjects, by many goroutines, are made for all subjects or
// for none, beside single charges, refunds, plans with other windows, bans, and new
// subjects that move slots. In the end each subject has used what was admitted, in its
// fixed windows and in its bucket.
func TestGroupsAddUp(t *testing.T) {
	const subjects, callers, calls, limit = 6, 8, 3000, 20_000
	smooth := ratelimit.Quota{Limit: 100_000, Window: fixedwindow.MaxLength}.Smooth(limit)
	day := ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength}
	all := ratelimit.MustPlan("all", ratelimit.Penalty{}, day, smooth)
	plans := []*ratelimit.Plan{
		all,
		ratelimit.MustPlan("more", ratelimit.Penalty{}, ratelimit.PerDay(1<<30).Smooth(1<<30), day, smooth),
		ratelimit.MustPlan("banned by hand", ratelimit.DefaultPenalty(), ratelimit.PerHour(1<<30), day, smooth),
	}
	l := newLimiter(t, Options{MaxSubjects: 256, Now: func() time.Time { return noon }})
	name := func(i int) string { return fmt.Sprint("shared ", i) }
	for i := range subjects {
		if _, err := l.Take(ctx, name(i), all, limit/2); err != nil { // so that it is held
			t.Fatal(err)
		}
	}
	var used [subjects]atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(caller), 2))
			for n := range calls {
				order := r.Perm(subjects)[:1+r.IntN(4)]
				charges, decisions := make([]ratelimit.Charge, len(order)), make([]ratelimit.Decision, len(order))
				for i, s := range order {
					charges[i] = ratelimit.Charge{Subject: name(s), Plan: plans[r.IntN(len(plans))], Cost: 1 + r.Int64N(3)}
				}
				switch r.IntN(20) {
				case 0:
					_ = l.Ban(ctx, charges[0].Subject, time.Hour, "")
					_, _ = l.Unban(ctx, charges[0].Subject)
				case 1:
					_ = l.Save(func([]Record) error { return nil })
				case 2:
					_, _ = l.Take(ctx, fmt.Sprint("new ", caller, n), plans[n%len(plans)], 1)
				}
				var err error
				if len(charges) == 1 {
					decisions[0], err = l.Take(ctx, charges[0].Subject, charges[0].Plan, charges[0].Cost)
				} else {
					err = l.TakeAll(ctx, charges, decisions)
				}
				if err != nil {
					t.Error(err)
					return
				}
				admitted := decisions[0].Allowed()
				back := r.IntN(4) == 0
				for i := range decisions {
					d := &decisions[i]
					if d.Allowed() != admitted {
						t.Errorf("of one group, a charge is %v and another is %v", decisions[0].Outcome, d.Outcome)
					}
					switch {
					case admitted && back:
						if err := l.Adjust(ctx, charges[i].Subject, d, 0, ""); err != nil {
							t.Error(err)
						}
					case admitted:
						used[order[i]].Add(d.Cost)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range subjects {
		d, err := l.Peek(ctx, name(i), all)
		must(t, err)
		want := limit/2 + used[i].Load()
		if got := limit - d.States[0].Remaining; got != want {
			t.Errorf("subject %d has used %d units of the window, want the %d that were admitted", i, got, want)
		}
		interval := of(all).Bucket(1).Interval()
		if got := (gcra.Of(d.States[1].Reset, d.Receipt.Rounded[1]) - gcra.At(d.Time)) / gcra.Time(interval); int64(got) != want {
			t.Errorf("subject %d owes %d units, want the %d that were admitted", i, got, want)
		}
	}
}

func seconds(limit int64, n int) ratelimit.Quota {
	return ratelimit.Quota{Limit: limit, Window: time.Duration(n) * time.Second}
}

// A window that holds nothing, after a refund, goes on beside those of another plan, for
// which the slot must have room, whether or not a charge comes before the switch.
func TestPlanSwitchBesideACharge(t *testing.T) {
	clock := enginetest.NewClock(noon)
	quotas := func(from int) (q []ratelimit.Quota) {
		for i := range plan.MaxQuotas {
			q = append(q, seconds(1<<30, 100*(from+i)))
		}
		return q
	}
	plans := []*ratelimit.Plan{
		ratelimit.MustPlan("first", ratelimit.Penalty{}, quotas(1)...),
		ratelimit.MustPlan("second", ratelimit.Penalty{}, quotas(5)...),
	}
	const subjects = 3000
	l := newLimiter(t, Options{Now: clock.Now})
	name := func(i int) string { return fmt.Sprint(i) }
	for i := range subjects {
		d := take(t, l, name(i), plans[0])
		must(t, l.Adjust(ctx, name(i), &d, 0, ""))
	}
	var arrived atomic.Int64
	var wg sync.WaitGroup
	for _, plan := range plans {
		wg.Go(func() {
			for i := range subjects {
				for arrived.Add(1); arrived.Load() < 2*int64(i+1); {
					runtime.Gosched() // until both are there
				}
				take(t, l, name(i), plan)
			}
		})
	}
	wg.Wait()
	for i := range subjects {
		first, second := take(t, l, name(i), plans[0]), take(t, l, name(i), plans[1])
		usedFirst, usedSecond := 1<<30-first.Remaining(), 1<<30-second.Remaining()
		if usedFirst != 3 || usedSecond != 3 && usedSecond != 4 {
			t.Fatalf("subject %d: %d and %d units are used, want 3, and 3 or 4", i, usedFirst, usedSecond)
		}
	}
}
