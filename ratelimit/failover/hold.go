package failover

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Hold implements [engine.Holder]. What the local engine admits is charged to the primary once
// Adjust has said what it costs, and not at all if the process ends before. What a request cost may
// be lost, or count twice, if an outage of more than ten minutes begins while Adjust is under way.
// If the primary or [Options.Local] is not a Holder, errors wrap [ratelimit.ErrInvalid] and
// [errors.ErrUnsupported].
func (l *Limiter) Hold(id string, timeout time.Duration) ratelimit.Limiter {
	_, _, err := both[engine.Holder](l, "hold")
	return taker{l: l, id: id, timeout: timeout, err: err}
}

// A taker makes charges, which are held unless it is plain.
type taker struct {
	l       *Limiter
	plain   bool
	id      string
	timeout time.Duration
	err     error // an engine is not a Holder
}

func (t taker) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
		return d, err
	}
	var d [1]ratelimit.Decision
	charges := []ratelimit.Charge{{Subject: subject, Plan: plan, Cost: cost}}
	err := t.decide(ctx, charges, d[:], func(ctx context.Context, decides ratelimit.Limiter) (err error) {
		d[0], err = t.of(decides).Take(ctx, subject, plan, cost)
		return err
	})
	return d[0], err
}

func (t taker) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := engine.CheckAll(charges, decisions); err != nil {
		return err
	}
	return t.decide(ctx, charges, decisions, func(ctx context.Context, decides ratelimit.Limiter) error {
		return ratelimit.TakeAll(ctx, t.of(decides), charges, decisions)
	})
}

// of returns the view of an engine that makes the charges.
func (t taker) of(decides ratelimit.Limiter) ratelimit.Limiter {
	if t.plain {
		return decides
	}
	return decides.(engine.Holder).Hold(t.id, t.timeout)
}

// decide has an engine make the decisions: the primary, or the local one if it does not.
func (t taker) decide(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision, do decider) error {
	if t.err != nil {
		return t.err
	}
	l := t.l
	got, err := l.ask(ctx, charges, decisions, do)
	here := got == unsent || got == failed // the local engine decides
	if here {
		l.fallbacks.Add(1)
		if l.local == nil {
			err = l.refusal(err)
		} else {
			err = do(ctx, l.local)
		}
	}
	if err != nil {
		return err
	}
	if l.local == nil || t.plain && !here || !decisions[engine.Deciding(decisions)].Allowed() {
		return nil
	}
	for i, c := range charges {
		switch {
		case !t.plain: // Adjust enters it into the journal
			l.holds.Store(hold{c.Subject, t.id}, here)
		case c.Cost > 0: // a Peek costs nothing
			l.admit(c.Subject, call{d: decisions[i], cost: decisions[i].Cost})
		}
	}
	return nil
}

// A hold is a charge that is held under the id of its request.
type hold struct{ subject, id string }
