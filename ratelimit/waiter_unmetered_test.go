package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A request under a plan without quotas does not wait in the queue of its subject.
func TestWaitUnderPlansWithoutQuotas(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := ratelimit.NewWaiter(ratelimittest.NewModel(time.Now))
		tight := ratelimit.MustPlan("tight", ratelimit.Penalty{}, ratelimit.PerHour(1))
		for range 2 {
			go func() { _, _ = l.Wait(t.Context(), "a", tight, 1) }()
		}
		synctest.Wait() // one of them waits
		begin := time.Now()
		if d, err := l.Wait(t.Context(), "a", ratelimit.UnlimitedPlan("u"), 9); err != nil || !d.Allowed() {
			t.Errorf("unlimited: got %v (%v), want allowed", d.Outcome, err)
		}
		if d, err := l.Wait(t.Context(), "a", ratelimit.SuspendedPlan("s"), 9); err == nil || d.Outcome != ratelimit.Suspended {
			t.Errorf("suspended: got %v (%v), want suspended and an error", d.Outcome, err)
		}
		if waited := time.Since(begin); waited > 0 {
			t.Errorf("they waited for %v, want not at all", waited)
		}
		time.Sleep(2 * time.Hour) // the other one is admitted
	})
}
