package failover_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

var nested = ratelimit.MustPlan("nested", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerHour(500), ratelimit.PerDay(1000))

// What the journal holds of a subject is merged before its next request is
// decided, even if it is far from its turn.
func TestMergeBeforeTheNextRequest(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		five := ratelimit.MustPlan("five", ratelimit.Penalty{}, ratelimit.PerDay(5))
		r.lose()
		const subjects = 300
		for i := range subjects {
			for range 5 {
				r.take(fmt.Sprint(i), five)
			}
		}
		// A second for each subject but the probe's: it takes minutes to merge all.
		var mu sync.Mutex
		r.shared.set(func(ctx context.Context) error {
			if !r.Open() && mu.TryLock() {
				defer mu.Unlock()
				time.Sleep(900 * time.Millisecond)
			}
			return nil
		})
		for r.Open() {
			time.Sleep(100 * time.Millisecond)
		}
		time.Sleep(10 * time.Second)
		if n := r.Stats().Pending; n < subjects/2 {
			r.Fatalf("%d subjects are left in the journal: the test has tested nothing", n)
		}
		for i := range subjects {
			began := time.Now()
			if d := r.take(fmt.Sprint(i), five); d.Outcome != ratelimit.Limited {
				r.Errorf("subject %d, whose quota was used up in the outage, was %v", i, d.Outcome)
			}
			if waited := time.Since(began); waited > 50*time.Millisecond {
				r.Errorf("a request waited %v for the merging, longer than the budget", waited)
			}
		}
		r.shared.set(nil)
		time.Sleep(10 * time.Second)
		if s := r.Stats(); s.Pending != 0 {
			r.Errorf("not everything was merged: %+v", s)
		}
	})
}

// A merge that hangs delays requests of the subject by no more than the budget.
func TestMergeHangs(t *testing.T) {
	run(t, withLocal, failover.Options{ConsecutiveFailures: 64}, func(r *rig) {
		r.shared.set(down)
		r.take("a", daily)
		r.shared.set(hangs(nil))
		for range 3 {
			began := time.Now()
			if r.take("a", daily); time.Since(began) != 50*time.Millisecond {
				r.Errorf("waited %v, want the budget of 50ms", time.Since(began))
			}
		}
		r.regain()
		r.wantUsed("when the primary is back", r.shared.engine, "a", daily, "4/24h0m0s")
	})
}

func TestMergeStrikesNobody(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		hasty := ratelimit.MustPlan("hasty", ratelimit.Penalty{
			Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour,
		}, ratelimit.PerDay(10))
		for range 10 {
			r.take("a", hasty)
		}
		for range 5 {
			r.lose()
			r.take("b", hasty)
			r.local.Reset(ctx, "a") // so that there is something to merge
			r.take("a", hasty)
			r.regain()
		}
		if d := r.take("a", hasty); d.Outcome != ratelimit.Limited || d.StrikesLeft != 0 {
			r.Errorf("after five merges that did not fit: got %v with %d strikes left, want the first strike", d.Outcome, d.StrikesLeft)
		}
	})
}

// An adder is a primary that records what it was charged.
type adder struct {
	*shared
	mu      sync.Mutex
	charges []string
}

func (c *adder) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, _ string) error {
	if err := c.pass(ctx); err != nil {
		return err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	text := fmt.Sprint(subject, " ", units)
	for _, o := range d.Receipt.Others {
		if o.Length > 0 {
			text += time.Unix(int64(o.End), 0).UTC().Format(" 15:04")
		}
	}
	c.charges = append(c.charges, text)
	return nil
}

// The primary is asked to charge the windows that are open when a charge is first sent.
func TestMergeNamesOpenWindows(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		time.Sleep(29*time.Minute + 30*time.Second) // 13:00
		primary := &adder{shared: r.shared}
		r.use(primary, failover.Options{Local: r.local, Backoff: time.Hour})
		primary.set(down)
		r.takeN("a", nested, 10)
		time.Sleep(10 * time.Minute)
		r.takeN("a", nested, 20)
		time.Sleep(20 * time.Second)
		r.takeN("a", nested, 30)
		r.take("b", nested)
		time.Sleep(30 * time.Second)
		r.take("later", nested)
		primary.set(nil)
		time.Sleep(time.Hour)
		// The first charge was sent, without success, before the next ones.
		want := []string{"a 10 14:00 00:00", "a 50 00:00", "b 1 00:00", "later 1 00:00"}
		primary.mu.Lock()
		defer primary.mu.Unlock()
		if diff := cmp.Diff(want, primary.charges, cmp.Transformer("sorted", sorted)); diff != "" {
			t.Errorf("the primary was charged (-want +got):\n%s", diff)
		}
	})
}

// A request of a caller that left is charged, if the primary charges it.
func TestCallerLeaves(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		leaving, cancel := context.WithCancel(ctx)
		p := &lagging{shared: r.shared, during: cancel}
		r.use(p, failover.Options{Local: r.local})
		if _, err := r.Take(leaving, "a", daily, 1); err != nil {
			r.Errorf("a decision that the primary made: %v", err)
		}
		r.wantUsed("to leave does not give the charge back", r.shared.engine, "a", daily, "1/24h0m0s")
	})
}
