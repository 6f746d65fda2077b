package failover_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Two commands at once could leave the primary and the local engine in different
// states.
func TestCommandsTakeTurns(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		var under, most atomic.Int64
		r.shared.set(func(context.Context) error {
			most.Store(max(most.Load(), under.Add(1)))
			defer under.Add(-1)
			time.Sleep(10 * time.Millisecond)
			return nil
		})
		var commands sync.WaitGroup
		for range 5 {
			commands.Go(func() { r.Ban(ctx, "a", time.Hour) })
			commands.Go(func() { r.Unban(ctx, "a") })
			commands.Go(func() { r.Reset(ctx, "a") })
		}
		commands.Wait()
		if n := most.Load(); n != 1 {
			r.Errorf("%d commands were under way at once, want 1", n)
		}
	})
}

// A banning engine is a local one that calls banning before it bans.
type banning struct {
	*memory.Limiter
	banning func()
}

func (b *banning) Ban(ctx context.Context, subject string, length time.Duration) error {
	b.banning()
	return b.Limiter.Ban(ctx, subject, length)
}

// A ban of the outage is in the journal before it holds here, so that a request
// which then finds the primary back meets it there.
func TestBanIsInTheJournalFirst(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		var pending int64
		local := &banning{Limiter: r.local}
		local.banning = func() { pending = r.Stats().Pending }
		l, err := failover.New(r.shared, failover.FailLocal, failover.Options{Local: local})
		if err != nil {
			r.Fatal(err)
		}
		defer l.Close()
		r.Limiter = l
		r.lose()
		before := r.Stats().Pending
		if err := r.Ban(ctx, "a", time.Hour); err != nil {
			r.Fatal(err)
		}
		if pending != before+1 {
			r.Errorf("when the local engine banned, %d subjects were in the journal, want %d", pending, before+1)
		}
	})
}
