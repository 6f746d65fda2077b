package failover

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Reset implements [ratelimit.Resetter]. It waits for the primary for at most a
// second, or the budget if that is longer, and so do Ban, Unban and Bans. Reset,
// Ban and Unban are carried out one after the other; each waits for its turn for
// at most the same time.
//
// While the circuit is open, these are orders: in mode [FailLocal] they hold here at
// once, and in the primary as soon as it is back. In the other modes they are
// refused with [ratelimit.ErrUnavailable].
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	if err := l.canFor(subject, "reset", resets); err != nil {
		return err
	}
	done, err := l.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if l.primaryDecides() {
		err := l.commandInstead(ctx, subject, (*entry).forget, func(ctx context.Context) error {
			return l.capable.resetter.Reset(ctx, subject)
		})
		if err != nil {
			return err
		}
	} else if err := l.order(subject, (*entry).orderReset); err != nil {
		return err
	}
	l.shadow.forget(subject)
	if l.mode == FailLocal {
		return l.localCapable.resetter.Reset(ctx, subject)
	}
	return nil
}

// Ban implements [ratelimit.Banner].
func (l *Limiter) Ban(ctx context.Context, subject string, length time.Duration) error {
	if err := l.canFor(subject, "ban", bans); err != nil {
		return err
	}
	if length <= 0 || length > ratelimit.MaxWindow {
		return fmt.Errorf("failover: ban: %w: length %v is not from above 0 to %v", ratelimit.ErrInvalid, length, ratelimit.MaxWindow)
	}
	done, err := l.turn(ctx)
	if err != nil {
		return err
	}
	defer done()
	if l.primaryDecides() {
		err := l.commandInstead(ctx, subject, (*entry).forgetBan, func(ctx context.Context) error {
			return l.capable.banner.Ban(ctx, subject, length)
		})
		if err != nil {
			return err
		}
		return l.banHere(ctx, subject, length)
	}
	// The order goes first: a request that finds the primary back, after another
	// one was refused here, must meet the ban there.
	ends := time.Now().Add(length)
	if err := l.order(subject, func(e *entry) { e.orderBan(ends) }); err != nil {
		return err
	}
	return l.banHere(ctx, subject, length)
}

// banHere bans for the time in which the primary does not decide.
func (l *Limiter) banHere(ctx context.Context, subject string, length time.Duration) error {
	if l.mode != FailLocal {
		return nil
	}
	l.cast(ctx, subject) // the primary's ban would later replace this one
	l.shadow.commands.Add(1)
	return l.localCapable.banner.Ban(ctx, subject, length)
}

// Unban implements [ratelimit.Banner]. While the circuit is open it reports
// whether there was a ban that this process knows of.
func (l *Limiter) Unban(ctx context.Context, subject string) (unbanned bool, err error) {
	if err := l.canFor(subject, "unban", bans); err != nil {
		return false, err
	}
	done, err := l.turn(ctx)
	if err != nil {
		return false, err
	}
	defer done()
	primary := l.primaryDecides()
	if primary {
		answer := new(bool) // not read if the call goes on after this one has returned
		undo := func(e *entry) {
			if e.ordersBan() { // the primary does not know yet
				*answer = e.ban > time.Now().UnixNano()
			}
			e.forgetBan()
		}
		err = l.commandInstead(ctx, subject, undo, func(ctx context.Context) (err error) {
			*answer, err = l.capable.banner.Unban(ctx, subject)
			return err
		})
		if err != nil {
			return false, err
		}
		unbanned = *answer
	} else if err := l.order(subject, (*entry).orderUnban); err != nil {
		return false, err
	}
	kept := l.shadow.unban(subject)
	if l.mode == FailLocal {
		here, err := l.localCapable.banner.Unban(ctx, subject)
		if !primary {
			return here || kept, err
		}
	}
	return unbanned, nil
}

// Bans implements [ratelimit.Banner]. While the circuit is open, in mode Local,
// they are the bans that this process knows of: those that the primary gave are
// among them once the subject has asked again.
func (l *Limiter) Bans(ctx context.Context) ([]ratelimit.Ban, error) {
	if err := l.can("list bans", bans); err != nil {
		return nil, err
	}
	if !l.primaryDecides() {
		if l.mode == FailLocal {
			return l.localCapable.banner.Bans(ctx)
		}
		return nil, l.refusal(nil)
	}
	answer := new([]ratelimit.Ban)
	err := l.command(ctx, l.patience, func(ctx context.Context) (err error) {
		*answer, err = l.capable.banner.Bans(ctx)
		return err
	})
	if err != nil {
		return nil, err
	}
	return *answer, nil
}

// turn waits until no other Reset, Ban or Unban is under way, so that two of them
// leave the primary and the local engine in the same state. The caller calls done.
func (l *Limiter) turn(ctx context.Context) (done func(), err error) {
	waiting, cancel := context.WithTimeout(ctx, l.patience)
	defer cancel()
	select {
	case l.commanding <- struct{}{}:
		return func() { <-l.commanding }, nil
	case <-waiting.Done():
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	return nil, l.errBudget
}

func (l *Limiter) primaryDecides() bool { return l.breaker.look().admits() }

// command has the primary do something that is no decision. It says nothing
// about the circuit.
func (l *Limiter) command(ctx context.Context, limit time.Duration, do func(context.Context) error) error {
	if err := ctx.Err(); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	c := l.newCall()
	c.ask = func(_ *call, ctx context.Context) error { return do(ctx) }
	return l.background(ctx, c, limit)
}

// commandInstead has the primary do something in place of orders in the journal.
func (l *Limiter) commandInstead(ctx context.Context, subject string, undo func(*entry), do func(context.Context) error) error {
	return l.command(ctx, l.patience, func(ctx context.Context) error {
		return l.merger.instead(ctx, subject, do, undo)
	})
}

// order enters what is to be done when the primary is back.
func (l *Limiter) order(subject string, change func(*entry)) error {
	if l.mode != FailLocal {
		return l.refusal(nil)
	}
	if !l.journal.order(subject, change) {
		return fmt.Errorf("failover: %w: the journal has no room for an order", ratelimit.ErrUnavailable)
	}
	l.keep()
	return nil
}
