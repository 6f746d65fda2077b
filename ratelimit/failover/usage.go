package failover

import (
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// AddUsage implements [ratelimit.UsageAdder], within the budget. If the primary does not
// answer, or the circuit is open, the mode decides:
//
//   - FailLocal: the local engine counts the units, and the primary gets them later. If
//     the primary is a [ratelimit.OnceUsageAdder], units whose answer was lost are
//     counted once.
//   - FailOpen: they are counted nowhere while the circuit is open. Before it opens, a
//     primary that fails is an error.
//   - FailClosed: an error that wraps [ratelimit.ErrUnavailable].
func (l *Limiter) AddUsage(ctx context.Context, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	primary, local, err := both[ratelimit.UsageAdder](l, "add usage")
	if err != nil {
		return err
	}
	err = checkUsage(subject, plan, &units)
	if err != nil || units == ([ratelimit.MaxQuotas]int64{}) || plan.Len() == 0 {
		return err
	}
	c := charge{plan: plan, at: nanoseconds(at), units: units}
	if !l.breaker.look().closed() {
		switch l.mode {
		case FailOpen:
			return nil
		case FailClosed:
			return l.refusal(nil)
		}
	} else {
		sent := false
		failed, err := within(ctx, l.opts.Budget, func(ctx context.Context) error {
			if err := l.merger.bring(ctx, subject); err != nil {
				return err
			}
			sent, c.id = true, rand.Text()
			return send(ctx, primary, subject, &c)
		})
		switch {
		case err == nil || !failed:
			return err
		case l.mode != FailLocal:
			return l.refusal(err)
		case !sent:
			c.id = ""
		}
	}
	if err := local.AddUsage(ctx, subject, plan, units, at); err != nil {
		return err
	}
	l.journal.enter(subject, c)
	l.keeper.start()
	return nil
}

// nanoseconds returns t in Unix nanoseconds, and for a time that they cannot express the
// nearest that they can, from 1970 on.
func nanoseconds(t time.Time) int64 {
	const latest = math.MaxInt64/int64(time.Second) - 1
	return min(max(t.Unix(), 0), latest)*int64(time.Second) + int64(t.Nanosecond())
}

func checkUsage(subject string, plan *ratelimit.Plan, units *[ratelimit.MaxQuotas]int64) error {
	if err := plan.Check(subject, 1); err != nil {
		return fmt.Errorf("failover: add usage: %w", err)
	}
	for i, n := range units {
		if n < 0 {
			return fmt.Errorf("failover: add usage: %w: units must be 0 or more, got %d", ratelimit.ErrInvalid, n)
		}
		units[i] = min(n, ratelimit.MaxLimit)
	}
	return nil
}
