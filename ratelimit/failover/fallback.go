package failover

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// takeInstead decides instead of the primary. The verdict is on a charge that the
// primary may still make for the same request.
func (l *Limiter) takeInstead(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64, cause error) (d ratelimit.Decision, v verdict, err error) {
	l.fallbacks.Add(1)
	switch l.mode {
	case FailLocal:
		l.cast(ctx, subject)
		d, err = l.opts.Local.Take(ctx, subject, plan, cost)
		if err == nil && d.Allowed() {
			l.journal.add(subject, plan, cost, d.Time)
			l.keep()
			v.at = d.Time
		}
		return d, v, err
	case FailOpen:
		return plan.Uncounted(cost, time.Now()), verdict{stands: true}, nil
	default:
		return d, v, l.refusal(cause)
	}
}

// peekInstead peeks instead of the primary.
func (l *Limiter) peekInstead(ctx context.Context, subject string, plan *ratelimit.Plan, cause error) (ratelimit.Decision, error) {
	switch l.mode {
	case FailLocal:
		l.cast(ctx, subject)
		return l.localCapable.peeker.Peek(ctx, subject, plan)
	case FailOpen:
		return plan.Uncounted(1, time.Now()), nil
	default:
		return ratelimit.Decision{}, l.refusal(cause)
	}
}

// refusal is the error of mode Closed. A nil cause means that the circuit is
// open; the error was then made when it opened.
func (l *Limiter) refusal(cause error) error {
	switch {
	case cause == nil:
		return *l.breaker.refusal.Load()
	case errors.Is(cause, ratelimit.ErrUnavailable):
		return cause
	}
	return fmt.Errorf("failover: %w: %w", ratelimit.ErrUnavailable, cause)
}

// uncharged reports whether d is a decision of mode Open.
func uncharged(d *ratelimit.Decision) bool {
	for i := range d.Plan.Len() {
		if d.States[i].Remaining < d.Plan.Quota(i).Limit {
			return false
		}
	}
	return true
}
