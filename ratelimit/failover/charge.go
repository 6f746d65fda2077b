package failover

import (
	"context"
	"crypto/rand"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// charge charges u to the engine. It removes from u what is charged, so that it can
// be called again after an error. A UsageAdder decides by its
// own clock which windows have ended.
func charge(ctx context.Context, engine ratelimit.Limiter, subject string, u *usage) error {
	if slices.Max(u.units[:]) == 0 {
		return nil
	}
	var err error
	switch c := engine.(type) {
	case ratelimit.OnceUsageAdder:
		if u.mark == "" {
			u.mark = rand.Text()
		}
		err = c.AddUsageOnce(ctx, u.mark, subject, u.plan, u.units, time.Unix(0, u.at))
	case ratelimit.UsageAdder:
		err = c.AddUsage(ctx, subject, u.plan, u.units, time.Unix(0, u.at))
	default:
		u.roll(time.Now().UnixNano())
		return chargeByTaking(ctx, engine, subject, u)
	}
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
