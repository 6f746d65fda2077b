package failover

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// ErrLocalOnly is wrapped, together with [ratelimit.ErrUnavailable], by the error of a
// Reset, Ban or Unban that took effect in this process only: with [Options.Local] while
// the circuit is open.
var ErrLocalOnly = errors.New("done in this process only; repeat it when the primary is back")

// Reset forgets subject: its usage, strikes and ban. It waits for the primary for at most a
// second, or the budget if that is longer, and so do Ban, Unban and Bans.
//
// While the circuit is open, the error of Reset, Ban and Unban wraps [ErrLocalOnly] if
// there is a local engine, and otherwise [ratelimit.ErrUnavailable] alone, with no effect.
// Concurrent commands about one subject may take effect in another order here than at
// the primary: repeat the last one.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	reset := func(ctx context.Context, engine resetter) error { return engine.Reset(ctx, subject) }
	return change(ctx, l, "reset", subject, func(ctx context.Context, primary resetter) error {
		if e := l.journal.find(subject); e != nil {
			if err := l.journal.merge(ctx, e); err != nil { // merged later, it would undo the reset
				return err
			}
		}
		return reset(ctx, primary)
	}, reset)
}

type resetter interface {
	Reset(ctx context.Context, subject string) error
}

// Ban implements [ratelimit.Banner].
func (l *Limiter) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	if _, err := plan.CheckBan(subject, length, reason); err != nil {
		return fmt.Errorf("failover: ban: %w", err)
	}
	ban := func(ctx context.Context, engine ratelimit.Banner) error {
		return engine.Ban(ctx, subject, length, reason)
	}
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
// that this process knows of, or without a local engine an error that wraps
// [ratelimit.ErrUnavailable].
func (l *Limiter) Bans(ctx context.Context) (bans []ratelimit.Ban, err error) {
	primary, local, err := both[ratelimit.Banner](l, "list bans")
	if err != nil {
		return nil, err
	}
	if l.breaker.look().open() {
		if l.mirror.local != nil {
			return local.Bans(ctx)
		}
		return nil, l.refusal(nil)
	}
	err = l.command(ctx, func(ctx context.Context) (err error) {
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
	open := l.breaker.look().open()
	switch {
	case subject == "":
		return fmt.Errorf("failover: %s: %w: no subject", what, ratelimit.ErrInvalid)
	case open && l.mirror.local == nil:
		return l.refusal(nil)
	case !open:
		err = l.command(ctx, func(ctx context.Context) error { return there(ctx, primary) })
	}
	if err != nil || l.mirror.local == nil {
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
func (l *Limiter) command(ctx context.Context, do func(context.Context) error) error {
	failed, err := within(ctx, l.keeper.patience, do)
	if failed {
		return l.refusal(err)
	}
	return err
}

// both returns the primary and the local engine, if there is one, with a
// capability. If one lacks it the error wraps [errors.ErrUnsupported].
func both[C any](l *Limiter, what string) (primary, local C, err error) {
	primary, ok := l.primary.(C)
	if ok && l.mirror.local != nil {
		local, ok = l.opts.Local.(C)
	}
	if !ok {
		err = fmt.Errorf("failover: %s: %w", what, errors.ErrUnsupported)
	}
	return primary, local, err
}

// Adjust implements [engine.Adjuster], within the budget. Without [Options.Local] the
// error wraps [ratelimit.ErrUnavailable] if the primary does not make the adjustment.
//
// With it, if the primary does not answer, or the circuit is open, the local engine makes
// the adjustment, and the primary makes it later, except in smooth quotas. If the answer of
// the primary was lost, or ctx has ended before it came, the whole call is repeated with the
// same id, and made once. If the local engine or the journal has no room, nothing is
// adjusted, and the error wraps [ratelimit.ErrUnavailable]. When the primary has added units,
// it is asked with Peek what the subject has used, so that the local engine knows it too.
// That may take a second budget.
//
// The primary alone remembers ids: with a local engine do not repeat a call that returned
// nil.
func (l *Limiter) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	primary, _, err := both[engine.Adjuster](l, "adjust")
	if err != nil {
		return err
	}
	added, err := engine.Adjustment(subject, d, units)
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	if added == 0 {
		return nil
	}
	local, failed, sent := l.mirror.local, true, false
	if !l.breaker.look().open() {
		id = cmp.Or(id, rand.Text())
		failed, err = within(ctx, l.opts.Budget, func(ctx context.Context) error {
			if err := l.journal.bring(ctx, subject); err != nil {
				return err
			}
			sent = true
			return primary.Adjust(ctx, subject, d, units, id)
		})
	}
	switch {
	case failed && local == nil:
		return l.refusal(err)
	case failed || sent && err != nil && local != nil && !errors.Is(err, ratelimit.ErrInvalid):
		if !sent {
			id = ""
		}
		return l.adjustHere(context.WithoutCancel(ctx), subject, d, units, id)
	case err != nil || local == nil:
	case added > 0:
		_, _ = l.Peek(ctx, subject, d.Plan) // which mirrors the answer
	default:
		_ = local.Adjust(ctx, subject, d, units, "")
	}
	return err
}

// adjustHere has the local engine make an adjustment. The primary gets it later. An id
// says that it may have made it.
func (l *Limiter) adjustHere(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	defer l.keeper.start()
	return l.journal.enter(subject, d, units, id, func() error {
		return l.mirror.local.Adjust(ctx, subject, d, units, "")
	})
}
