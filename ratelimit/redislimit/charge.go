package redislimit

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// chargeAttempts is how often a charge is sent at most.
const chargeAttempts = 4

// Charge implements [ratelimit.Charger]. Unlike a request, a charge whose answer
// was lost is sent again, while ctx lasts, since it bears a mark by which the
// script does not make it twice. An error says that it is not known whether it
// was made.
func (l *Limiter) Charge(ctx context.Context, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	return l.ChargeOnce(ctx, rand.Text(), subject, plan, units, at)
}

// ChargeOnce implements [ratelimit.OnceCharger]. A mark is remembered until the last
// window that at lies in has ended, and for one minute at least. Of a charge without
// units in a window that window does not matter. A charge that is repeated later than
// that counts nothing. This holds if at is less than a day ahead of the server's clock.
func (l *Limiter) ChargeOnce(ctx context.Context, mark, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	if mark == "" {
		return fmt.Errorf("%w: no mark", ratelimit.ErrInvalid)
	}
	if err := plan.Check(subject, 1); err != nil {
		return err
	}
	for i, n := range units {
		if n < 0 {
			return fmt.Errorf("%w: charge of %d units", ratelimit.ErrInvalid, n)
		}
		units[i] = min(n, ratelimit.MaxLimit)
	}
	q := question{
		op: opCharge, subject: subject, plan: plan,
		arg: min(max(at.Unix(), 0), math.MaxUint32) * int64(time.Second), charge: &charge{mark, units},
	}
	var err error
	for range chargeAttempts {
		if _, err = l.ask(ctx, q); err == nil || !errors.Is(err, ratelimit.ErrUnavailable) {
			return err
		}
	}
	return err
}
