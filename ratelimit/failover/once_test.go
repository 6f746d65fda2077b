package failover_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A once is a primary that makes charges with an id once, and loses some answers.
type once struct {
	*picky
	ids     map[string]bool
	answers func(n int) error // of the n-th charge, after it was made
	n       int
}

func (m *once) AddUsageOnce(ctx context.Context, id, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	if err := m.pass(ctx); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.ids[subject+id] {
		m.ids[subject+id] = true
		if err := m.engine.AddUsage(ctx, subject, plan, units, at); err != nil {
			return err
		}
	}
	m.n++
	return m.answers(m.n)
}

// A charge whose answer was lost is repeated with its id, and what came since has
// another one.
func TestMergeIsMadeOnce(t *testing.T) {
	lost := errors.New("connection reset")
	for _, test := range []struct {
		name    string
		answers func(n int) error
	}{
		{"the first answer is lost", func(n int) error {
			if n == 1 {
				return lost
			}
			return nil
		}},
		{"every second answer is lost", func(n int) error {
			if n%2 == 1 {
				return lost
			}
			return nil
		}},
		{"nine answers are lost", func(n int) error {
			if n < 10 {
				return lost
			}
			return nil
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
				p := &once{picky: &picky{shared: r.shared}, ids: map[string]bool{}, answers: test.answers}
				l, err := failover.New(p, failover.FailLocal, failover.Options{Local: r.local})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				r.Limiter = l
				hourly := ratelimit.MustPlan("hourly", ratelimit.Penalty{}, ratelimit.PerHour(1000), ratelimit.PerDay(1000))
				r.lose()
				for range 400 {
					r.take("a", daily)
				}
				r.shared.set(nil)
				for r.Circuit() != failover.CircuitClosed {
					time.Sleep(time.Millisecond)
				}
				for i := range 10 {
					r.take("a", []*ratelimit.Plan{daily, hourly}[i%2])
					time.Sleep(7 * time.Millisecond)
				}
				synctest.Wait()
				time.Sleep(time.Minute)
				if s := r.Stats(); s.Pending != 0 {
					r.Fatalf("a minute later %d subjects are in the journal", s.Pending)
				}
				r.wantUsed("410 were admitted", r.shared.engine, "a", daily, "410/24h0m0s")
			})
		})
	}
}

// A primary hangs while the subject goes on: what was admitted before and after the
// charge of unknown outcome is charged once.
func TestChargesOfUnknownOutcome(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{ConsecutiveFailures: 20}, func(r *rig) {
		p := &once{picky: &picky{shared: r.shared}, ids: map[string]bool{}, answers: func(int) error { return nil }}
		l, err := failover.New(p, failover.FailLocal, failover.Options{Local: r.local, ConsecutiveFailures: 30})
		if err != nil {
			r.Fatal(err)
		}
		defer l.Close()
		r.Limiter = l
		r.shared.set(hangs(nil))
		for range 20 {
			r.take("a", daily)
		}
		r.shared.set(nil)
		time.Sleep(time.Minute)
		r.wantUsed("20 were admitted", r.shared.engine, "a", daily, "20/24h0m0s")
		if s := r.Stats(); s.Lost != 0 || s.Pending != 0 {
			r.Errorf("a minute later: %+v, want nothing lost and nothing pending", s)
		}
	})
}
