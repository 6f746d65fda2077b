package failover_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A stall of the primary that is twice as long as the budget fails all calls
// that are under way, and does not open the circuit.
func TestStallLeavesTheCircuitClosed(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		var stall atomic.Int64 // when it ends, Unix nanoseconds
		r.shared.set(func(context.Context) error {
			time.Sleep(time.Until(time.Unix(0, stall.Load())))
			return nil
		})
		end := time.Now().Add(5 * time.Second)
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() {
				for time.Now().Before(end) {
					r.take("a", daily)
					time.Sleep(time.Millisecond)
				}
			})
		}
		for range 4 {
			time.Sleep(time.Second)
			stall.Store(time.Now().Add(100 * time.Millisecond).UnixNano())
		}
		callers.Wait()
		s := r.Stats()
		if s.Timeouts < 4*64 {
			t.Errorf("%d calls timed out: the test has tested nothing", s.Timeouts)
		}
		if s.Opened != 0 {
			t.Errorf("four stalls of 100ms opened the circuit %d times, want 0", s.Opened)
		}
	})
}

// A primary that hangs costs requests the budget for as long as ten of them
// would take that come one after the other, and not longer.
func TestHangOpensTheCircuit(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		release := make(chan struct{})
		defer close(release)
		r.shared.set(hangs(release))
		began := time.Now()
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() {
				for r.Circuit() == failover.CircuitClosed && time.Since(began) < time.Minute {
					r.take("a", daily)
				}
			})
		}
		callers.Wait()
		r.wantState("ten budgets later", failover.CircuitOpen)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("the circuit opened after %v, want ten budgets of 50ms", took)
		}
	})
}

// A charge that is taken back holds the place of its call: there are never more
// goroutines than Options.Calls.
func TestRefundOfALateChargeHoldsItsPlace(t *testing.T) {
	run(t, failover.FailClosed, failover.Options{Calls: 1, Row: 64}, func(r *rig) {
		release := make(chan struct{})
		defer close(release)
		r.shared.set(slow(80 * time.Millisecond))
		r.Take(ctx, "a", daily, 1) // has its error after 50ms
		r.shared.set(hangs(release))
		time.Sleep(50 * time.Millisecond) // the refund hangs
		calls := r.shared.calls.Load()
		if calls != 2 {
			r.Fatalf("the primary was called %d times, want twice, for the request and the refund", calls)
		}
		r.Take(ctx, "a", daily, 1)
		if n := r.shared.calls.Load() - calls; n != 0 {
			r.Errorf("%d calls were made beside the one that Options.Calls allows", n)
		}
	})
}
