package failover

import (
	"context"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// The keeper is the goroutine that probes and merges. It runs while there is
// something to do, and not while all is well: it begins when the circuit opens
// or something is entered into the journal, and ends when the circuit is closed
// and the journal empty.

// probe is the subject of probes.
const probe = "failover:probe"

// mergeSteps is how many entries are merged before the keeper looks up.
const mergeSteps = 64

// keep sees to it that the keeper runs.
func (l *Limiter) keep() {
	if l.keeping.Load() {
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.closed || l.keeping.Load() {
		return
	}
	l.keeping.Store(true)
	l.keepers.Go(l.keeper)
}

// rouse ends the keeper's rest: the circuit has changed.
func (l *Limiter) rouse() {
	l.keep()
	select {
	case l.roused <- struct{}{}:
	default:
	}
}

func (l *Limiter) keeper() {
	// A late answer may yet come to a call that has just failed, and take out of
	// the journal what it charged.
	rest := l.opts.FirstProbe
	resting := true
	for {
		l.announce()
		switch {
		case l.breaker.state() != CircuitClosed:
			if !l.sleep(l.breaker.wait(), nil) {
				return
			}
			l.probe()
			resting, rest = false, l.opts.FirstProbe
		case l.journal.empty():
			if l.retire() {
				return
			}
		case resting:
			if !l.sleep(rest, l.roused) {
				return
			}
			resting = false
		default:
			switch l.mergeSome() {
			case mergedSome:
				rest = l.opts.FirstProbe
			case mergedAll:
				resting, rest = true, l.opts.FirstProbe
			case primaryGone:
				resting, rest = true, min(2*rest, l.opts.LastProbe)
			}
		}
	}
}

// sleep waits, at most until somebody rouses the keeper. It reports whether the
// keeper goes on.
func (l *Limiter) sleep(d time.Duration, roused <-chan struct{}) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-roused:
		return true
	case <-l.ctx.Done():
		return false
	}
}

// retire reports whether the keeper ends. A goroutine that made work before this
// saw the keeper running; one that makes work after it starts another keeper.
func (l *Limiter) retire() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.keeping.Store(false)
	if l.closed || l.journal.empty() && l.breaker.state() == CircuitClosed {
		return true
	}
	l.keeping.Store(true)
	return false
}

func (l *Limiter) announce() {
	for _, change := range l.breaker.news() {
		if l.opts.OnChange != nil {
			l.opts.OnChange(change)
		}
	}
}

// probe asks the primary for a decision, in the time that a request would have.
// It is a request like any other, since a store may answer and yet be unable to
// write.
func (l *Limiter) probe() {
	plan := l.breaker.probe()
	l.announce()
	l.breaker.probed(l.ask(plan))
}

// ask asks the primary for the decision of a probe.
func (l *Limiter) ask(plan *ratelimit.Plan) error {
	c := l.newCall()
	c.ask, c.subject, c.plan, c.cost = askProbe, probe, plan, 1
	return l.background(l.ctx, c, l.opts.Budget)
}

func askProbe(c *call, ctx context.Context) error {
	plan, err := ratelimit.NewPlan(c.plan.Name(), ratelimit.Penalty{}, c.plan.Quotas()...)
	if err == nil {
		_, err = c.limiter.primary.Take(ctx, c.subject, plan, c.cost)
	}
	if errors.Is(err, ratelimit.ErrInvalid) {
		return nil // it has answered
	}
	return err
}

// The outcomes of merging a few entries.
type mergeOutcome int

const (
	mergedSome  mergeOutcome = iota // there may be more
	mergedAll                       // but for what is not due, or being merged by others
	primaryGone                     // the primary does not answer
)

// mergeSome merges a few entries. Close does not break a merging off, of which
// it would not be known whether it was done.
func (l *Limiter) mergeSome() mergeOutcome {
	for range mergeSteps {
		if l.ctx.Err() != nil {
			return mergedAll
		}
		e := l.journal.claimAny(l.journal.time())
		if e == nil {
			return mergedAll
		}
		if l.mergeOne(context.Background(), e) == nil {
			continue
		}
		if l.ask(l.breaker.planOfProbe()) != nil {
			return primaryGone
		}
		l.journal.refuse(e, l.opts.FirstProbe, l.opts.LastProbe)
	}
	return mergedSome
}

// mergeOne merges an entry that was claimed.
func (l *Limiter) mergeOne(ctx context.Context, e *entry) error {
	c := l.newCall()
	c.ask, c.entry = askMerge, e
	return l.background(ctx, c, l.patience)
}

// background makes a call on the Limiter's own account.
func (l *Limiter) background(ctx context.Context, c *call, limit time.Duration) error {
	late, err := l.wait(ctx, c, limit)
	switch {
	case late:
		c.verdict <- verdict{stands: true}
		return err
	case err != nil:
		if c.entry != nil {
			l.journal.restore(c.entry)
		}
	default:
		err = c.err
	}
	l.release(c)
	return err
}
