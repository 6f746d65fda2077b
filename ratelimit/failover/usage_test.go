package failover_test

import (
	"context"
	"errors"
	"math"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

func add(r *rig, units int64) error {
	return r.AddUsage(ctx, "a", daily, [ratelimit.MaxQuotas]int64{units}, time.Now())
}

// Usage that a service adds, as when it settles a cost, is counted where the requests
// of the subject are.
func TestAddUsage(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		r.takeN("a", daily, 10)
		if err := add(r, 5); err != nil {
			r.Error(err)
		}
		r.wantUsed("while the primary answers", r.shared.engine, "a", daily, "15/24h0m0s")
		r.lose()
		d := r.takeN("a", daily, 20)
		if err := add(r, 7); err != nil {
			r.Error(err)
		}
		r.wantUsed("during the outage", r.local, "a", daily, "27/24h0m0s")
		if d.Cost = 25; r.Refund(ctx, "a", &d) != nil {
			r.Error("a refund of what was taken and added fails")
		}
		r.wantUsed("during the outage, refunded", r.local, "a", daily, "2/24h0m0s")
		r.regain()
		r.wantUsed("merged", r.shared.engine, "a", daily, "17/24h0m0s")
	})
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		r.shared.set(down)
		if err := add(r, 7); err != nil {
			r.Errorf("a primary that fails, circuit closed: %v", err)
		}
		r.wantUsed("counted here", r.local, "a", daily, "7/24h0m0s")
		r.shared.set(nil)
		r.take("a", daily)
		r.wantUsed("brought with the next request", r.shared.engine, "a", daily, "8/24h0m0s")
	})
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		r.lose()
		for range 2 {
			if err := add(r, math.MaxInt64); err != nil {
				r.Error(err)
			}
		}
		r.regain()
		r.wantUsed("more than a count holds, merged", r.shared.engine, "a", daily, "1000/24h0m0s")
	})
	for _, mode := range []failover.Mode{failover.FailOpen, failover.FailClosed} {
		run(t, mode, failover.Options{}, func(r *rig) {
			r.shared.set(down)
			if err := add(r, 7); !errors.Is(err, ratelimit.ErrUnavailable) {
				r.Errorf("%v, a primary that fails: got error %v, want one that wraps ErrUnavailable", mode, err)
			}
			r.lose()
			err := add(r, 7)
			if want := mode == failover.FailClosed; errors.Is(err, ratelimit.ErrUnavailable) != want || !want && err != nil {
				r.Errorf("%v, the circuit is open: got error %v, want one: %t", mode, err, want)
			}
			r.shared.set(nil)
			r.wantUsed("counted nowhere", r.shared.engine, "a", daily, "0/24h0m0s")
		})
	}
}

// Usage whose answer was lost is sent again with its id, and counted once.
func TestAddUsageIsMadeOnce(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		lost := errors.New("connection reset")
		primary := &once{picky: &picky{shared: r.shared}, ids: map[string]bool{}, answers: func(n int) error {
			if n == 1 {
				return lost
			}
			return nil
		}}
		l, err := failover.New(primary, failover.FailLocal, failover.Options{Local: r.local})
		if err != nil {
			r.Fatal(err)
		}
		defer func() { _ = l.Close() }()
		if err := l.AddUsage(ctx, "a", daily, [ratelimit.MaxQuotas]int64{7}, time.Now()); err != nil {
			r.Errorf("AddUsage: %v", err)
		}
		if _, err := l.Take(ctx, "a", daily, 1); err != nil {
			r.Errorf("Take: %v", err)
		}
		r.wantUsed("at the primary", r.shared.engine, "a", daily, "8/24h0m0s")
	})
}

// A caller whose context has ended gets its error, and nothing is counted.
func TestAddUsageAfterTheContextEnded(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		ended, cancel := context.WithCancel(ctx)
		cancel()
		err := r.AddUsage(ended, "a", daily, [ratelimit.MaxQuotas]int64{7}, time.Now())
		if !errors.Is(err, context.Canceled) {
			r.Errorf("got error %v, want that of the context", err)
		}
		r.wantUsed("at the primary", r.shared.engine, "a", daily, "0/24h0m0s")
		r.wantUsed("here", r.local, "a", daily, "0/24h0m0s")
	})
}
