package failover

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// charge has the engine count what u says. It takes from u what it is done with,
// so that it can be called again after an error.
func charge(ctx context.Context, engine ratelimit.Limiter, subject string, u *usage) error {
	u.roll(time.Now().UnixNano())
	if slices.Max(u.units[:]) == 0 {
		return nil
	}
	c, ok := engine.(ratelimit.Charger)
	if !ok {
		return chargeByTaking(ctx, engine, subject, u)
	}
	err := c.Charge(ctx, subject, u.plan, u.units, time.Unix(0, u.at))
	if err == nil {
		clear(u.units[:])
	}
	return err
}

// chargeByTaking charges through requests, as much as fits. A request charges
// every window of its plan by the same, so that windows which used more come
// first, under a plan of their own:
//
//	10 in the minute, 80 in the hour, 300 in the day:
//	220 of the day, then 70 of the hour and the day, then 10 of all three
//
// The plans have no penalty, so that what does not fit is no strike. Once one
// window is used up, the others do not matter, and are left as they are.
func chargeByTaking(ctx context.Context, engine ratelimit.Limiter, subject string, u *usage) error {
	for {
		var quotas []ratelimit.Quota
		most, next := slices.Max(u.units[:]), int64(0)
		for i := range u.plan.Len() {
			switch n := u.units[i]; {
			case n == most:
				quotas = append(quotas, u.plan.Quota(i))
			case n > next:
				next = n
			}
		}
		if most == 0 {
			return nil
		}
		// Windows that used as much as most are the first step's, those that used
		// next join them after it.
		plan, err := ratelimit.NewPlan(u.plan.Name(), ratelimit.Penalty{}, quotas...)
		if err != nil {
			return err
		}
		if err := takeWhatFits(ctx, engine, subject, plan, most-next); err != nil {
			return err
		}
		for i := range u.units {
			u.units[i] = min(u.units[i], next)
		}
	}
}

func takeWhatFits(ctx context.Context, engine ratelimit.Limiter, subject string, plan *ratelimit.Plan, units int64) error {
	for i := range plan.Len() {
		units = min(units, plan.Quota(i).Limit)
	}
	d, err := engine.Take(ctx, subject, plan, units)
	if err != nil || d.Outcome != ratelimit.Limited {
		return err
	}
	fits := units
	for i := range plan.Len() {
		fits = min(fits, d.States[i].Remaining)
	}
	if fits < 1 {
		return nil
	}
	_, err = engine.Take(ctx, subject, plan, fits)
	return err
}

// merge tells the primary what the claimed entry e says. What could not be done
// goes back into the journal. What the primary refuses as wrong is dropped.
func (l *Limiter) merge(ctx context.Context, e *entry) error {
	// Requests of the subject wait for the merging, but not for a primary that
	// does not return from it.
	stop := context.AfterFunc(ctx, func() { l.journal.release(e) })
	defer stop()
	merged := false // after a panic of the primary as well
	defer func() {
		if !merged {
			l.journal.restore(e)
		}
	}()
	if err := l.replay(ctx, e); err != nil {
		return err
	}
	merged = true
	l.journal.done(e)
	l.merged.Add(1)
	return nil
}

func (l *Limiter) replay(ctx context.Context, e *entry) error {
	if e.reset {
		if err := l.capable.resetter.Reset(ctx, e.subject); err != nil {
			return err
		}
		e.reset = false
	}
	if e.lift {
		if _, err := l.capable.banner.Lift(ctx, e.subject); err != nil {
			return err
		}
		e.lift = false
	}
	if left := time.Until(time.Unix(0, e.ban)); e.ban != 0 && left > 0 {
		if err := l.capable.banner.Ban(ctx, e.subject, left); err != nil {
			return err
		}
	}
	e.ban = 0
	for len(e.usage) > 0 {
		err := charge(ctx, l.primary, e.subject, &e.usage[0])
		if err != nil && !errors.Is(err, ratelimit.ErrInvalid) {
			return err
		}
		e.usage = e.usage[1:]
	}
	return nil
}

// bring merges what the journal has of subject, before a request of it is
// decided: nobody has a second quota until its turn to be merged has come.
func (l *Limiter) bring(ctx context.Context, subject string) error {
	e, err := l.journal.claim(ctx, subject)
	if e == nil {
		return err
	}
	if err := l.merge(ctx, e); err != nil {
		return err
	}
	return ctx.Err() // nobody may wait for the rest any more
}
