//go:build unix

package faults

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	callers = 64
	// pace is the time from one request of a caller to its next, unless the answer
	// takes longer: an open circuit answers millions in a second, and a load that
	// sends as many leaves no processor for the server. It doubles each time the circuit opens:
	// if no fault opened it, the machine is too busy for so many.
	pace         = 4 * time.Millisecond
	mostDoubling = 6
)

// The phases of a run. A request belongs to the one in which it begins, or to the
// fault if that comes before the answer.
const (
	healthy = iota
	fault
	recovery
	phases
)

var phaseNames = [phases]string{"before", "during", "after"}

// A load is callers that take one unit after the other until they are stopped.
type load struct {
	take     func(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error)
	subjects []*subject
	opened   func() uint64 // how often the circuit has opened

	phase   atomic.Int32
	ended   [phases]atomic.Int64
	answers [phases]atomic.Int64 // those that ended in a decision
	callers [callers]caller
	wrong   atomic.Pointer[error] // an error that no promise allows

	running sync.WaitGroup
	stop    context.CancelFunc
}

// A caller is one goroutine of the load, and what it has seen.
type caller struct {
	begun   atomic.Int64 // requests
	tallies [phases]tally
}

// start starts the callers. The context ends what never would: nothing else ends
// their requests.
func (l *load) start(ctx context.Context) {
	stopped, stop := context.WithCancel(ctx)
	l.stop = stop
	for i := range l.callers {
		l.running.Go(func() {
			time.Sleep(pace * time.Duration(i) / callers) // they take turns
			tick := time.NewTicker(pace)
			defer tick.Stop()
			for n, ticks := i, 0; ; ticks++ {
				select {
				case <-stopped.Done():
					return
				case <-tick.C:
					if ticks%(1<<min(l.opened(), mostDoubling)) == 0 {
						l.request(ctx, &l.callers[i], choose(l.subjects, i, n))
						n++
					}
				}
			}
		})
	}
}

func (l *load) request(ctx context.Context, c *caller, s *subject) {
	phase := l.phase.Load()
	c.begun.Add(1)
	start := time.Now()
	d, err := l.take(ctx, s.name, s.plan, 1)
	took := time.Since(start)
	if phase == healthy && l.phase.Load() != healthy {
		phase = fault
	}
	t := &c.tallies[phase]
	t.latencies = append(t.latencies, took)
	switch {
	case err != nil:
		t.failed++
		s.failed.Add(1)
		if !errors.Is(err, ratelimit.ErrUnavailable) || ctx.Err() != nil {
			err = fmt.Errorf("asking for %s: %w", s.name, err)
			l.wrong.Store(&err)
		}
	case d.Allowed():
		t.admitted++
		s.admitted.Add(1)
	default:
		t.denied++
		s.denied.Add(1)
	}
	if err == nil {
		l.answers[phase].Add(1)
	}
	l.ended[phase].Add(1)
}

// turned returns whether every caller has had the answer to a request that it
// began after now: nothing that was decided before is still on its way.
func (l *load) turned() func() bool {
	var begun [callers]int64
	for i := range l.callers {
		begun[i] = l.callers[i].begun.Load()
	}
	return func() bool {
		for i := range l.callers {
			if l.callers[i].begun.Load() < begun[i]+2 {
				return false
			}
		}
		return true
	}
}

// decided reports whether Redis has decided for every subject in this phase, except those
// whose master is away.
func (l *load) decided() bool {
	phase := l.phase.Load()
	return !slices.ContainsFunc(l.subjects, func(s *subject) bool {
		return s.decided.Load() != phase && !(s.away && phase == fault)
	})
}

// total is what all callers have seen in a phase, once they have stopped.
func (l *load) total(phase int) (sum tally) {
	for i := range l.callers {
		sum.add(&l.callers[i].tallies[phase])
	}
	return sum
}

// begun is how many requests there were.
func (l *load) begun() (sum int64) {
	for i := range l.callers {
		sum += l.callers[i].begun.Load()
	}
	return sum
}

// finished returns whether every caller has stopped.
func (l *load) finished() func() bool {
	done := make(chan struct{})
	go func() { l.running.Wait(); close(done) }()
	return func() bool {
		select {
		case <-done:
			return true
		default:
			return false
		}
	}
}
