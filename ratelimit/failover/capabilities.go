package failover

import (
	"context"
	"errors"
	"fmt"

	"github.com/animalstore/gatehouse/ratelimit"
)

// capabilities are what an engine can do beside Take; nil: it cannot.
type capabilities struct {
	peeker   ratelimit.Peeker
	resetter ratelimit.Resetter
	refunder ratelimit.Refunder
	banner   ratelimit.Banner
}

func capabilitiesOf(engine ratelimit.Limiter) (c capabilities) {
	c.peeker, _ = engine.(ratelimit.Peeker)
	c.resetter, _ = engine.(ratelimit.Resetter)
	c.refunder, _ = engine.(ratelimit.Refunder)
	c.banner, _ = engine.(ratelimit.Banner)
	return c
}

// can tells whether something is done by whichever engine is in charge: both
// must be able to. If not, the error wraps [errors.ErrUnsupported].
func (l *Limiter) can(what string, has func(*capabilities) bool) error {
	if has(&l.capable) && (l.mode != FailLocal || has(&l.localCapable)) {
		return nil
	}
	return fmt.Errorf("failover: %s: %w", what, errors.ErrUnsupported)
}

// canFor is can, of what is done to one subject.
func (l *Limiter) canFor(subject, what string, has func(*capabilities) bool) error {
	if subject == "" {
		return fmt.Errorf("failover: %s: %w: no subject", what, ratelimit.ErrInvalid)
	}
	return l.can(what, has)
}

func peeks(c *capabilities) bool   { return c.peeker != nil }
func resets(c *capabilities) bool  { return c.resetter != nil }
func refunds(c *capabilities) bool { return c.refunder != nil }
func bans(c *capabilities) bool    { return c.banner != nil }

// Peek implements [ratelimit.Peeker], with the budget and the fallback of Take.
func (l *Limiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	if err := l.can("peek", peeks); err != nil {
		return ratelimit.Decision{}, err
	}
	if err := plan.Check(subject, 1); err != nil {
		return ratelimit.Decision{}, err
	}
	d, late, decided, err := l.consult(ctx, askPeek, subject, plan, 1)
	if decided {
		return d, err
	}
	if late != nil {
		late.verdict <- verdict{stands: true}
	}
	return l.peekInstead(ctx, subject, plan, err)
}

// Refund implements [ratelimit.Refunder], within the budget. What the journal
// still holds is given back there, everything else by the engine in charge.
// While the circuit is open the modes [FailOpen] and [FailClosed] refuse it with
// [ratelimit.ErrUnavailable].
func (l *Limiter) Refund(ctx context.Context, subject string, d *ratelimit.Decision) error {
	if err := l.canFor(subject, "refund", refunds); err != nil {
		return err
	}
	if d == nil || d.Plan == nil {
		return fmt.Errorf("failover: refund: %w: no decision", ratelimit.ErrInvalid)
	}
	if d.Outcome != ratelimit.Allowed || uncharged(d) {
		return nil
	}
	here := !l.primaryDecides()
	if l.journal.credit(subject, d.Plan, d.Cost, d.Time) {
		here = true
	}
	switch {
	case here && l.mode == FailLocal:
		return l.localCapable.refunder.Refund(ctx, subject, d)
	case here:
		return l.refusal(nil)
	}
	given := *d // the primary may read it when the caller has left
	return l.command(ctx, l.opts.Budget, func(ctx context.Context) error {
		return l.capable.refunder.Refund(ctx, subject, &given)
	})
}
