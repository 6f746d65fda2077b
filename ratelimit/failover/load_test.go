package failover_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A primary comes and goes under load from 64 goroutines: no request waits longer
// than the budget, and in the end the primary has counted every request that was
// admitted, once.
func TestNothingLostNothingTwice(t *testing.T) {
	oneProcessor(t)
	for _, test := range []struct {
		name  string
		fault func(ctx context.Context, i int64) error
	}{
		{"fails half of the time", func(_ context.Context, i int64) error {
			if i%2 == 0 {
				return errDown
			}
			return nil
		}},
		{"answers late half of the time", func(ctx context.Context, i int64) error {
			if i%2 == 0 {
				return slow(70 * time.Millisecond)(ctx)
			}
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, withLocal, failover.Options{}, func(r *rig) {
				var calls, admitted atomic.Int64
				r.shared.set(func(ctx context.Context) error { return test.fault(ctx, calls.Add(1)) })
				plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(1_000_000))
				var wg sync.WaitGroup
				for g := range 64 {
					wg.Go(func() {
						for i := range 200 {
							began := time.Now()
							d, err := r.Take(ctx, string(rune('a'+(g+i)%7)), plan, 1)
							if waited := time.Since(began); waited > 50*time.Millisecond {
								t.Errorf("waited %v, longer than the budget of 50ms", waited)
							}
							if err != nil {
								t.Errorf("Take: %v", err)
							}
							if d.Allowed() {
								admitted.Add(1)
							}
							time.Sleep(50 * time.Millisecond)
						}
					})
				}
				wg.Wait()
				r.regain()
				var counted int64
				for s := range 7 {
					d, err := r.shared.engine.Peek(ctx, string(rune('a'+s)), plan)
					must(t, err)
					counted += 1_000_000 - d.States[0].Remaining
				}
				if counted != admitted.Load() || counted != 64*200 {
					t.Errorf("of %d requests %d were admitted, and %d counted", 64*200, admitted.Load(), counted)
				}
				if s := r.Stats(); s.Fallbacks == 0 || s.Lost != 0 {
					t.Errorf("the test has tested nothing: %+v", s)
				}
			})
		})
	}
}
