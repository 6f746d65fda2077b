package failover_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

// A picky primary does something else with some subjects' charges.
type picky struct {
	*shared
	mu     sync.Mutex
	charge func(ctx context.Context, subject string) error
}

func (p *picky) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if err := p.pass(ctx); err != nil {
		return err
	}
	p.mu.Lock()
	charge := p.charge
	p.mu.Unlock()
	if err := charge(ctx, subject); err != nil {
		return err
	}
	return p.adjust(ctx, subject, d, units, id)
}

// pick runs a test whose primary is picky.
func pick(t *testing.T, opts failover.Options, test func(*rig, *picky)) {
	t.Helper()
	run(t, withLocal, opts, func(r *rig) {
		p := &picky{shared: r.shared, charge: func(_ context.Context, subject string) error {
			if strings.HasPrefix(subject, "bad") {
				return errDown
			}
			return nil
		}}
		opts.Local = r.local
		r.use(p, opts)
		test(r, p)
	})
}

// The usage of a subject that cannot be merged does not keep that of others from
// being merged. It is tried again until its windows have ended.
func TestUnmergeableSubject(t *testing.T) {
	pick(t, failover.Options{}, func(r *rig, p *picky) {
		r.lose()
		for i := range 50 {
			r.take(fmt.Sprint("bad ", i%3), daily)
			r.take(fmt.Sprint("good ", i), daily)
		}
		r.shared.set(nil)
		time.Sleep(10 * time.Second)
		if s := r.Stats(); s.Pending != 3 || s.Lost != 0 {
			r.Fatalf("%d subjects are in the journal and %d were dropped, want those 3 that cannot be merged", s.Pending, s.Lost)
		}
		for i := range 50 {
			r.wantUsed("the others are merged", r.shared.engine, fmt.Sprint("good ", i), daily, "1/24h0m0s")
		}
		for range 100 {
			r.take("bad 0", daily)
		}
		r.wantUsed("its requests are decided here", r.local, "bad 0", daily, "117/24h0m0s")
		r.wantOpen("one subject's failures are not the primary's", false)
		if n := r.Stats().Failures; n > 20 {
			r.Errorf("%d failures of the primary were counted, want those of the outage", n)
		}
		p.mu.Lock()
		p.charge = func(_ context.Context, subject string) error {
			if subject == "bad 1" {
				return errDown
			}
			return nil
		}
		p.mu.Unlock()
		time.Sleep(10 * time.Second)
		r.wantUsed("it is tried again", r.shared.engine, "bad 0", daily, "117/24h0m0s")
		time.Sleep(12 * time.Hour) // until midnight
		if s := r.Stats(); s.Pending != 0 || s.Lost != 0 {
			r.Errorf("after the end of the day %d subjects are in the journal and %d charges were dropped, want 0", s.Pending, s.Lost)
		}
		before := r.shared.calls.Load()
		time.Sleep(time.Hour)
		if n := r.shared.calls.Load() - before; n != 0 {
			r.Errorf("the primary was called %d times after everything was merged or has ended, want 0", n)
		}
		if d := r.take("bad 1", daily); d.Remaining() != 999 {
			r.Errorf("on the next day: %d remaining, want 999 by the primary", d.Remaining())
		}
	})
}

// Nothing is dropped because the primary is gone, however long that lasts and
// although no request finds out.
func TestOutageDropsNothing(t *testing.T) {
	pick(t, failover.Options{ConsecutiveFailures: 64}, func(r *rig, p *picky) {
		r.shared.set(down)
		r.take("a", daily)
		time.Sleep(10 * time.Hour)
		r.wantOpen("one failure", false)
		if n := r.shared.calls.Load(); n > 150_000 { // a charge and a probe in five seconds
			r.Errorf("the primary was called %d times in ten hours, want the waits to grow", n)
		}
		r.regain()
		r.wantUsed("merged after ten hours", r.shared.engine, "a", daily, "1/24h0m0s")
		if n := r.Stats().Lost; n != 0 {
			r.Errorf("%d were dropped, want 0", n)
		}
	})
}

// A charge that the primary finds invalid is dropped, and the rest is merged.
func TestInvalidCharge(t *testing.T) {
	pick(t, failover.Options{}, func(r *rig, p *picky) {
		p.charge = func(_ context.Context, subject string) error {
			if subject == "bad" {
				return fmt.Errorf("%w: no such subject", ratelimit.ErrInvalid)
			}
			return nil
		}
		r.lose()
		r.take("bad", daily)
		r.take("good", daily)
		r.regain()
		r.wantUsed("the others are merged", r.shared.engine, "good", daily, "1/24h0m0s")
		if n := r.Stats().Lost; n != 1 {
			r.Errorf("%d were dropped, want the invalid charge", n)
		}
		if d := r.take("bad", daily); d.Remaining() != 999 {
			r.Errorf("the next request: %d remaining, want 999 by the primary", d.Remaining())
		}
	})
}

// Close merges what can be merged, and says how much could not.
func TestCloseMergesTheOthers(t *testing.T) {
	pick(t, failover.Options{ConsecutiveFailures: 64}, func(r *rig, p *picky) {
		var mu sync.Mutex
		seen := map[string]int{}
		p.charge = func(ctx context.Context, subject string) error {
			switch {
			case strings.HasPrefix(subject, "bad"):
				return errDown
			case strings.HasPrefix(subject, "hung"):
				return hangs(ctx)
			}
			mu.Lock()
			defer mu.Unlock()
			if seen[subject]++; seen[subject] == 1 {
				return errDown // once
			}
			return nil
		}
		r.shared.set(down)
		var subjects []string
		for i := range 3 {
			subjects = append(subjects, fmt.Sprint("bad ", i), fmt.Sprint("hung ", i))
		}
		for i := range 20 {
			subjects = append(subjects, fmt.Sprint("good ", i))
		}
		for _, subject := range subjects {
			r.take(subject, daily)
		}
		r.shared.set(nil)
		began := time.Now()
		err := r.Close()
		if err == nil || !strings.Contains(err.Error(), "usage of 6 subjects is not merged") {
			r.Errorf("Close: got error %v, want one that says that usage of 6 subjects is not merged", err)
		}
		if waited := time.Since(began); waited > 2*time.Second {
			r.Errorf("Close took %v, want at most two seconds", waited)
		}
		for i := range 20 {
			r.wantUsed("a subject that can be merged", r.shared.engine, fmt.Sprint("good ", i), daily, "1/24h0m0s")
		}
	})
}
