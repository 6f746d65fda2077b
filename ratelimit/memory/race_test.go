package memory

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
)

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
		if _, err := l.Take(ctx, name(i), all, limit/2); err != nil { // so that it is kept
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
		interval := all.Numbers().Bucket(1).Interval()
		if got := (gcra.Of(d.States[1].Reset, d.Receipt.Rounded[1]) - gcra.At(d.Time)) / gcra.Time(interval); int64(got) != want {
			t.Errorf("subject %d owes %d units, want the %d that were admitted", i, got, want)
		}
	}
}

func seconds(limit int64, n int) ratelimit.Quota {
	return ratelimit.Quota{Limit: limit, Window: time.Duration(n) * time.Second}
}
