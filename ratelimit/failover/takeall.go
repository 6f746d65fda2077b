package failover

import (
	"context"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// TakeAll implements [ratelimit.MultiTaker], with the budget and the mode of Take. All
// charges are decided by the primary, or all by the mode. An engine that is not a
// MultiTaker itself is asked as [ratelimit.TakeAll] says; if the budget ends meanwhile,
// what it has charged is given back in the background.
func (l *Limiter) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := ratelimit.CheckAll(charges, decisions); err != nil {
		return err
	}
	var cause error
	if v := l.breaker.look(); v.closed() {
		generation := l.mirror.generation.Load()
		failed, err := within(ctx, l.opts.Budget, func(ctx context.Context) error {
			for i := range charges {
				if err := l.merger.bring(ctx, charges[i].Subject); err != nil {
					return err
				}
			}
			return ratelimit.TakeAll(ctx, l.primary, charges, decisions)
		})
		switch {
		case err == nil:
			l.breaker.succeeded(v)
			for i := range charges {
				l.mirror.update(ctx, charges[i].Subject, &decisions[i], generation)
			}
			return nil
		case !failed:
			return err
		case errors.Is(err, errBacksOff): // the primary may answer others
		case l.breaker.failed(v, charges[0].Plan, err):
			l.keeper.rouse()
		}
		cause = err
	}
	l.fallbacks.Add(1)
	switch l.mode {
	case FailLocal:
		return l.takeAllHere(ctx, charges, decisions)
	case FailOpen:
		now := time.Now()
		for i, c := range charges {
			decisions[i] = c.Plan.Uncounted(c.Cost, now)
		}
		return nil
	}
	return l.refusal(cause)
}

// takeAllHere has the local engine decide. What it admits is merged later.
func (l *Limiter) takeAllHere(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	err := ratelimit.TakeAll(ctx, l.mirror.local, charges, decisions)
	if err != nil || !decisions[ratelimit.Deciding(decisions)].Allowed() {
		return err
	}
	for i, c := range charges {
		l.journal.admit(c.Subject, &decisions[i])
	}
	l.keeper.start()
	return nil
}
