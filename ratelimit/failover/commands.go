package failover

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// ErrLocalOnly is wrapped, together with [ratelimit.ErrUnavailable], by the error of a
// Reset, Ban or Unban that took effect in this process only: in mode [FailLocal] while
// the circuit is open.
var ErrLocalOnly = errors.New("done in this process only; repeat it when the primary is back")

// Refund implements [ratelimit.Refunder], within the budget. Usage that is still in
// the journal, and was not sent, is taken out of it and given back by the local engine.
// Other usage is given back by the engine that decides about the subject at the moment.
func (l *Limiter) Refund(ctx context.Context, subject string, d *ratelimit.Decision) error {
	primary, local, err := both[ratelimit.Refunder](l, "refund")
	if err != nil {
		return err
	}
	if d == nil {
		return fmt.Errorf("failover: refund: %w: no decision", ratelimit.ErrInvalid)
	}
	if err := d.Plan.Check(subject, d.Cost); err != nil {
		return fmt.Errorf("failover: refund: %w", err)
	}
	if d.Outcome != ratelimit.Allowed || unused(d) {
		return nil // nothing was charged: it was denied, or admitted by mode FailOpen
	}
	open := !l.breaker.look().closed()
	switch credited := l.journal.credit(subject, d.Plan, d.Cost, d.Time); {
	case credited, open && l.mode == FailLocal:
		return local.Refund(ctx, subject, d)
	case open:
		return l.refusal(nil)
	}
	err = l.command(ctx, l.opts.Budget, func(ctx context.Context) error {
		if err := l.merger.bring(ctx, subject); err != nil {
			return err
		}
		return primary.Refund(ctx, subject, d)
	})
	if errors.Is(err, errBacksOff) {
		return local.Refund(ctx, subject, d)
	}
	return err
}

// unused reports whether each quota has its whole limit left.
func unused(d *ratelimit.Decision) bool {
	for i := range d.Plan.Len() {
		q := d.Plan.Quota(i)
		if d.States[i].Remaining < cmp.Or(q.Burst(), q.Limit) {
			return false
		}
	}
	return true
}

// Reset implements [ratelimit.Resetter]. It waits for the primary for at most a
// second, or the budget if that is longer, and so do Ban, Unban and Bans.
//
// While the circuit is open, the error of Reset, Ban and Unban wraps [ErrLocalOnly] in
// mode [FailLocal], and [ratelimit.ErrUnavailable] alone, with no effect, in the others.
// Concurrent commands about one subject may take effect in another order here than at
// the primary: repeat the last one.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	reset := func(ctx context.Context, engine ratelimit.Resetter) error { return engine.Reset(ctx, subject) }
	return change(ctx, l, "reset", subject, func(ctx context.Context, primary ratelimit.Resetter) error {
		if e, _ := l.journal.find(subject); e != nil {
			if err := l.merger.merge(ctx, e); err != nil { // merged later, it would undo the reset
				return err
			}
		}
		return reset(ctx, primary)
	}, reset)
}

// Ban implements [ratelimit.Banner].
func (l *Limiter) Ban(ctx context.Context, subject string, length time.Duration) error {
	if length <= 0 || length > ratelimit.MaxWindow {
		return fmt.Errorf("failover: ban: %w: length must be above 0 and at most %v, got %v", ratelimit.ErrInvalid, ratelimit.MaxWindow, length)
	}
	ban := func(ctx context.Context, engine ratelimit.Banner) error { return engine.Ban(ctx, subject, length) }
	return change(ctx, l, "ban", subject, ban, ban)
}

// Unban implements [ratelimit.Banner]. While the circuit is open it reports whether
// this process knew of a ban.
func (l *Limiter) Unban(ctx context.Context, subject string) (unbanned bool, err error) {
	var banned []bool // at the primary, and here
	unban := func(ctx context.Context, engine ratelimit.Banner) error {
		b, err := engine.Unban(ctx, subject)
		banned = append(banned, b)
		return err
	}
	err = change(ctx, l, "unban", subject, unban, unban)
	return len(banned) > 0 && banned[0], err
}

// Bans implements [ratelimit.Banner]. While the circuit is open it returns the bans
// that this process knows of, in mode [FailLocal], and otherwise an error that wraps
// [ratelimit.ErrUnavailable].
func (l *Limiter) Bans(ctx context.Context) (bans []ratelimit.Ban, err error) {
	primary, local, err := both[ratelimit.Banner](l, "list bans")
	if err != nil {
		return nil, err
	}
	if !l.breaker.look().closed() {
		if l.mode == FailLocal {
			return local.Bans(ctx)
		}
		return nil, l.refusal(nil)
	}
	err = l.command(ctx, l.keeper.patience, func(ctx context.Context) (err error) {
		bans, err = primary.Bans(ctx)
		return err
	})
	return bans, err
}

// change changes the primary and then the local engine; while the circuit is open, the
// local engine alone.
func change[C any](ctx context.Context, l *Limiter, what, subject string, there, here func(context.Context, C) error) error {
	primary, local, err := both[C](l, what)
	if err != nil {
		return err
	}
	open := !l.breaker.look().closed()
	switch {
	case subject == "":
		return fmt.Errorf("failover: %s: %w: no subject", what, ratelimit.ErrInvalid)
	case open && l.mode != FailLocal:
		return l.refusal(nil)
	case !open:
		err = l.command(ctx, l.keeper.patience, func(ctx context.Context) error { return there(ctx, primary) })
	}
	if err != nil || l.mode != FailLocal {
		return err
	}
	err = l.mirror.override(func() error { return here(ctx, local) })
	if err == nil && open {
		err = fmt.Errorf("failover: %s: %w: %w", what, ErrLocalOnly, l.refusal(nil))
	}
	return err
}

// command has the primary do something that is not a decision: a failure says
// nothing about the circuit.
func (l *Limiter) command(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	failed, err := within(ctx, limit, do)
	if failed {
		return l.refusal(err)
	}
	return err
}

// both returns the primary and, in mode FailLocal, the local engine with a
// capability. If one lacks it the error wraps [errors.ErrUnsupported].
func both[C any](l *Limiter, what string) (primary, local C, err error) {
	primary, ok := l.primary.(C)
	if ok && l.mode == FailLocal {
		local, ok = l.opts.Local.(C)
	}
	if !ok {
		err = fmt.Errorf("failover: %s: %w", what, errors.ErrUnsupported)
	}
	return primary, local, err
}
