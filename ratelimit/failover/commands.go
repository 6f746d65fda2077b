package failover

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// ErrLocalOnly is wrapped, together with [ratelimit.ErrUnavailable], by the error of a Reset,
// Ban or Unban that took effect in this process, with [Options.Local], and that the primary has
// not confirmed. The primary fails then, or the circuit is open. If its answer was lost, it may
// have done the same.
var ErrLocalOnly = errors.New("done in this process only, as far as is known; repeat it when the primary is back")

// Reset forgets subject: its usage, strikes and ban, and its entry in the journal. It waits for
// the primary for at most a second, or the budget if that is longer, and so do Ban, Unban and Bans.
//
// If the primary fails or the circuit is open, the error of Reset, Ban and Unban wraps
// [ErrLocalOnly] if there is a local engine, and otherwise [ratelimit.ErrUnavailable] alone.
// Concurrent calls about one subject may take effect in another order here than at the
// primary: repeat the last one.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	return change(ctx, l, "reset", subject, func(ctx context.Context, engine interface {
		Reset(context.Context, string) error
	}) error {
		err := engine.Reset(ctx, subject)
		if err == nil {
			l.journal.forget(subject) // merged later, it would undo the reset
			l.holds.Range(func(h, here any) bool {
				if h.(hold).subject == subject && here == true {
					l.holds.Delete(h)
				}
				return true
			})
		}
		return err
	})
}

// Ban implements [engine.Banner].
func (l *Limiter) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	if _, err := engine.CheckBan(subject, length, reason); err != nil {
		return fmt.Errorf("failover: ban: %w", err)
	}
	return change(ctx, l, "ban", subject, func(ctx context.Context, engine engine.Banner) error {
		return engine.Ban(ctx, subject, length, reason)
	})
}

// Unban implements [engine.Banner]. If the primary fails or the circuit is open, it reports
// whether this process knew of a ban.
func (l *Limiter) Unban(ctx context.Context, subject string) (unbanned bool, err error) {
	var banned []bool // at the primary, and here
	err = change(ctx, l, "unban", subject, func(ctx context.Context, engine engine.Banner) error {
		b, err := engine.Unban(ctx, subject)
		banned = append(banned, b)
		return err
	})
	return len(banned) > 0 && banned[0], err
}

// Bans implements [engine.Banner]. If the primary fails or the circuit is open, it returns
// the bans that this process knows of, or without a local engine an error that wraps
// [ratelimit.ErrUnavailable].
func (l *Limiter) Bans(ctx context.Context) (bans []engine.Ban, err error) {
	_, err = command(ctx, l, "list bans", func(ctx context.Context, engine engine.Banner) (err error) {
		bans, err = engine.Bans(ctx)
		return err
	})
	return bans, err
}

// change changes the primary and then the local engine, or the local engine alone.
func change[C any](ctx context.Context, l *Limiter, what, subject string, do func(context.Context, C) error) error {
	if subject == "" {
		return fmt.Errorf("failover: %s: %w: no subject", what, ratelimit.ErrInvalid)
	}
	failure, err := command(ctx, l, what, do)
	switch {
	case err != nil || l.local == nil:
		return err
	case failure != nil:
		return fmt.Errorf("failover: %s: %w: %w", what, ErrLocalOnly, failure)
	}
	return do(ctx, l.opts.Local.(C))
}

// command has the primary do something that is not a decision or, if the primary fails or the
// circuit is open, the local engine alone; failure then says why. The circuit does not count it.
func command[C any](ctx context.Context, l *Limiter, what string, do func(context.Context, C) error) (failure, err error) {
	primary, local, err := both[C](l, what)
	if err != nil {
		return nil, err
	}
	got := unsent
	if !l.Open() {
		got, err = within(ctx, l.keeper.patience, func(ctx context.Context) error { return do(ctx, primary) })
	}
	if got == answered || got == rejected {
		return nil, err
	}
	failure = l.refusal(err)
	if l.local == nil {
		return failure, failure
	}
	return failure, do(ctx, local)
}

// both returns the primary and the local engine, if there is one, with a
// capability. If one lacks it the error wraps [ratelimit.ErrInvalid] and [errors.ErrUnsupported].
func both[C any](l *Limiter, what string) (primary, local C, err error) {
	primary, ok := l.primary.(C)
	if ok && l.local != nil {
		local, ok = l.opts.Local.(C)
	}
	if !ok {
		err = fmt.Errorf("failover: %w: an engine has no %s: %w", ratelimit.ErrInvalid, what, errors.ErrUnsupported)
	}
	return primary, local, err
}

// Adjust implements [engine.Adjuster], within the budget. Without [Options.Local] the
// error wraps [ratelimit.ErrUnavailable] if the primary does not make the adjustment.
//
// With it, if the primary does not answer, or the circuit is open, the local engine makes the
// adjustment, and the primary makes it later, except in smooth quotas. If the answer of the primary
// was lost, or ctx has ended before it came, the whole call is repeated with the same id, and
// within ten minutes made once. If the journal has no room, nothing is adjusted here, and the
// error wraps [ratelimit.ErrUnavailable]; the primary may have made the adjustment if its answer
// was lost.
//
// The primary alone remembers ids: with a local engine do not repeat a call that returned nil.
func (l *Limiter) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) (err error) {
	primary, local, err := both[engine.Adjuster](l, "adjust")
	if err != nil {
		return err
	}
	added, err := engine.Adjustment(subject, d, units)
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	if added == 0 && (id == "" || !d.Allowed()) {
		return nil
	}
	made, held := l.holds.LoadAndDelete(hold{subject, id})
	defer func() {
		if err != nil && held {
			l.holds.Store(hold{subject, id}, made) // the call may be repeated
		}
	}()
	c := call{d: *d, cost: units, id: cmp.Or(id, rand.Text())}
	here := made == true
	if here { // the primary has not charged it, or gives it back when the hold times out
		c.d.Cost, c.id = 0, rand.Text()
	}
	got := unsent
	if !l.Open() {
		got, err = within(ctx, l.opts.Budget, func(ctx context.Context) error {
			if err := l.journal.bring(ctx, subject); err != nil {
				return err
			}
			c.sent = time.Now().UnixNano()
			return primary.Adjust(ctx, subject, &c.d, units, c.id)
		})
	}
	if c.sent == 0 && (here || !held) {
		c.id = "" // the primary has not seen it; otherwise the same id makes the adjustment once
	}
	switch {
	case got == answered:
	case errors.Is(err, ratelimit.ErrInvalid), got == rejected && (c.sent == 0 || local == nil):
		return err // the caller's; if the adjustment was sent, the primary may have made it
	case local == nil:
		return l.refusal(err)
	case here:
		l.admit(subject, c)
	default:
		if err := l.journal.enter(subject, c); err != nil {
			return err
		}
		l.keeper.start()
	}
	if local != nil {
		_ = local.Adjust(context.WithoutCancel(ctx), subject, d, units, id)
	}
	return nil
}
