package lease

import (
	"context"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Many callers of three processes make requests about a few subjects while the clock runs, minutes
// end, plans change, and commands are given; then all is closed while requests go on. The
// engine has counted in the day what was admitted, and no unit more unless an answer was lost.
func TestNoUnitIsLostOrMade(t *testing.T) {
	plans := []*ratelimit.Plan{
		ratelimit.MustPlan("one", ratelimit.Penalty{}, ratelimit.PerMinute(300), ratelimit.PerDay(1_000_000).In(time.UTC)),
		ratelimit.MustPlan("two", ratelimit.DefaultPenalty(), ratelimit.PerSecond(50), ratelimit.PerMinute(2000), ratelimit.PerDay(5000).In(time.UTC), ratelimit.PerMonth(1<<40)),
		ratelimit.MustPlan("three", ratelimit.Penalty{}, ratelimit.PerDay(1<<50).In(time.UTC)),
	}
	for name, fails := range map[string]bool{"all is answered": false, "some is lost": true} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.fake.hook = func(asked call) error {
				if !asked.answered && rand.IntN(4) == 0 {
					time.Sleep(time.Duration(rand.IntN(200)) * time.Microsecond)
				}
				switch {
				case !fails:
				case rand.IntN(20) == 0:
					return ratelimit.ErrUnavailable
				case asked.cost > 0 && rand.IntN(100) == 0: // in what runs in the background it would end the process
					panic("lost")
				}
				return nil
			}
			var processes []*Limiter
			for range 3 {
				l := r.process()
				l.background = l.start
				processes = append(processes, l)
			}
			var admitted [6]atomic.Int64
			request := func(rng *rand.Rand) {
				defer func() { _ = recover() }()
				i := rng.IntN(len(admitted))
				subject, p, cost := fmt.Sprint("user ", i), plans[i%3], int64(1)
				if i == 5 { // whose plan changes, and is made anew
					p = []*ratelimit.Plan{plans[0], plans[2], ratelimit.MustPlan("new", ratelimit.Penalty{}, ratelimit.PerMinute(1+int64(rng.IntN(100))), ratelimit.PerDay(100_000).In(time.UTC))}[rng.IntN(6)/2]
				}
				if rng.IntN(10) == 0 {
					cost = 1 + int64(rng.IntN(40))
				}
				l := processes[rng.IntN(len(processes))]
				ctx, cancel := context.WithCancel(ctx)
				if rng.IntN(5) == 0 {
					cancel()
				}
				defer cancel()
				switch rng.IntN(200) {
				case 0:
					_ = l.Ban(ctx, subject, time.Second, "")
				case 1:
					_, _ = l.Unban(ctx, subject)
				case 2:
					d := make([]ratelimit.Decision, 2)
					all := []ratelimit.Charge{{Subject: subject, Plan: p, Cost: 1}, {Subject: "all", Plan: plans[2], Cost: 1}}
					if err := l.TakeAll(ctx, all, d); err == nil && d[0].Allowed() {
						admitted[i].Add(1)
					}
				case 3:
					l.sweep(false)
				case 4:
					if d, err := l.Peek(ctx, subject, p); err == nil && d.Remaining() > d.Limit() {
						t.Errorf("%d of %d remain", d.Remaining(), d.Limit())
					}
				default:
					if d, err := l.Take(ctx, subject, p, min(cost, p.Quotas()[0].Limit)); err == nil && d.Allowed() {
						admitted[i].Add(d.Cost)
					}
				}
			}
			var callers sync.WaitGroup
			for i := range 12 {
				callers.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(i), 1))
					for range 3000 {
						request(rng)
						step := time.Duration(rng.IntN(1000)) * time.Microsecond
						if rng.IntN(500) == 0 {
							step = time.Duration(rng.IntN(4000)) * time.Millisecond
						}
						r.clock.Advance(step)
					}
				})
			}
			for r.fake.calls.Load() < 8000 { // then close while requests go on
				time.Sleep(time.Millisecond)
			}
			for _, l := range processes {
				callers.Go(l.Close)
			}
			callers.Wait()
			for i := range admitted {
				p := ratelimit.MustPlan("day", ratelimit.Penalty{}, ratelimit.PerDay(1<<52).In(time.UTC))
				d, err := r.fake.Peek(ctx, fmt.Sprint("user ", i), p)
				must(t, err)
				if used, n := 1<<52-d.States[0].Remaining, admitted[i].Load(); n == 0 || used != n && !fails || used < n {
					t.Errorf("user %d: %d units are counted, and %d were admitted", i, used, n)
				}
			}
			for _, l := range processes {
				l.check(t, 0)
			}
			t.Log(r.fake.calls.Load(), "questions,", r.clock.Now().Sub(start))
		})
	}
}
