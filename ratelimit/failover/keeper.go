package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A keeper is the goroutine that probes the primary and merges the journal. It begins with the
// first failure, and idles while the circuit is closed and the journal is empty.
type keeper struct {
	l        *Limiter
	patience time.Duration // of a merge

	begin  sync.Once
	ended  sync.WaitGroup
	work   chan struct{}   // the journal may not be empty, or the circuit has opened
	roused chan struct{}   // the circuit has opened
	ctx    context.Context // ends when the keeper is closed
	stop   context.CancelFunc
}

func (k *keeper) init(l *Limiter) {
	k.l, k.patience = l, max(time.Second, l.opts.Budget)
	k.work, k.roused = make(chan struct{}, 1), make(chan struct{}, 1)
	k.ctx, k.stop = context.WithCancel(context.Background())
}

// start sees to it that the keeper merges what was entered into the journal.
func (k *keeper) start() {
	k.begin.Do(func() { k.ended.Go(k.run) })
	signal(k.work)
}

// rouse starts the keeper, or ends its rest: the circuit has opened.
func (k *keeper) rouse() {
	k.start()
	signal(k.roused)
}

func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

func (k *keeper) run() {
	rest, roused := k.l.opts.Backoff, k.roused
	for {
		if failure := k.l.breaker.opening.Swap(nil); failure != nil {
			k.l.opts.OnChange(*failure)
			rest, roused = k.l.breaker.backoff(), nil
		}
		woken, until := roused, time.After(rest)
		idle := k.l.journal.empty() && !k.l.Open()
		if idle {
			k.l.warned.Store(false) // the outage is over
			woken, until = k.work, nil
		}
		select {
		case <-woken:
		case <-until:
		case <-k.ctx.Done():
			return
		}
		open := k.l.Open()
		switch {
		case idle || k.l.breaker.opening.Load() != nil: // there is work, or OnChange to call
		case open:
			failure := k.probe()
			k.l.breaker.probed(failure)
			k.l.opts.OnChange(failure)
			rest = k.l.breaker.backoff()
			if failure == nil {
				rest, roused = 0, k.roused
			}
		case k.merge():
			rest = k.l.opts.Backoff
		default:
			rest = min(2*max(rest, k.l.opts.Backoff/2), k.l.breaker.current().maxBackoff)
		}
	}
}

// probes is how many subjects a probe takes a unit for: enough that each of a few servers of the
// primary has one.
const probes = 16

// probe asks the primary for decisions, as requests do, since a store may answer and yet be
// unable to write. One is enough: the circuit is for an outage of the whole primary.
func (k *keeper) probe() (err error) {
	ctx, cancel := context.WithCancel(k.ctx)
	defer cancel()
	answers := make(chan error, probes)
	for i := range probes {
		k.ended.Go(func() {
			_, err := within(ctx, k.l.opts.Budget, func(ctx context.Context) (err error) {
				defer recovered(&err)
				_, err = k.l.primary.Take(ctx, fmt.Sprint("failover:probe:", i), k.l.breaker.plan.Load().WithoutPenalty(), 1)
				return err
			})
			answers <- err
		})
	}
	for range probes {
		if err = <-answers; err == nil || errors.Is(err, ratelimit.ErrInvalid) {
			return nil
		}
	}
	if k.ctx.Err() != nil { // requests get the error, none of which was cancelled
		return errors.New("Close ended the probe")
	}
	return err
}

// merge merges the journal, and reports whether it merged anything. It ends when the circuit
// opens, since OnChange and the next probe wait for it. No call is interrupted: its outcome
// would then be unknown.
func (k *keeper) merge() (merged bool) {
	for _, e := range k.l.journal.all() {
		if k.ctx.Err() != nil || k.l.Open() {
			break
		}
		ctx, cancel := context.WithTimeout(context.Background(), k.patience)
		err := k.l.journal.merge(ctx, e)
		cancel()
		switch {
		case err == nil:
			merged = true
		case k.probe() != nil:
			return merged // the primary does not answer
		default:
			e.refused.Store(true)
		}
	}
	return merged
}

// Close ends the goroutine that probes and merges, if it runs. If the circuit is closed it then
// merges what is left. It takes at most two seconds, or two budgets if they are longer, and waits
// for a call of OnChange that has begun. An error says how many subjects are not merged.
//
// Requests can still be decided, but a circuit that is open or opens then stays open,
// and OnChange is called no more.
func (l *Limiter) Close() error {
	k := &l.keeper
	k.begin.Do(func() {}) // it begins no more
	k.stop()
	k.ended.Wait()
	if !l.Open() {
		ctx, cancel := context.WithTimeout(context.Background(), k.patience)
		defer cancel()
		l.journal.mergeAll(ctx)
	}
	switch n := l.journal.size.Load(); n {
	case 0:
		return nil
	case 1:
		return errors.New("failover: Close: usage of 1 subject is not merged")
	default:
		return fmt.Errorf("failover: Close: usage of %d subjects is not merged", n)
	}
}
