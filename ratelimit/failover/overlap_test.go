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
	oneProcessor(t)
	run(t, withLocal, failover.Options{}, func(r *rig) {
		var stall atomic.Int64 // when it ends, Unix nanoseconds
		r.shared.set(func(ctx context.Context) error {
			return slow(time.Until(time.Unix(0, stall.Load())))(ctx)
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
	oneProcessor(t)
	run(t, withLocal, failover.Options{}, func(r *rig) {
		r.shared.set(hangs(nil))
		began := time.Now()
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() {
				for !r.Open() && time.Since(began) < time.Minute {
					r.take("a", daily)
				}
			})
		}
		callers.Wait()
		r.wantOpen("ten budgets later", true)
		if took := time.Since(began); took != 500*time.Millisecond {
			t.Errorf("the circuit opened after %v, want ten budgets of 50ms", took)
		}
	})
}
