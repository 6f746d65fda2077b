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

// AddUsage implements [ratelimit.UsageAdder] by a call of AddUsageOnce with a random
// id. If the answer is lost, AddUsage sends the call again until ctx ends. After an
// error the units may have been added, once.
func (l *Limiter) AddUsage(ctx context.Context, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	return l.AddUsageOnce(ctx, rand.Text(), subject, plan, units, at)
}

// AddUsageOnce implements [ratelimit.OnceUsageAdder]. Redis remembers the id for one
// minute, or until the last window that at lies in and that gets units has ended, if
// that is later. A repetition after that adds nothing. This holds if at is less than
// a day ahead of the server's clock.
func (l *Limiter) AddUsageOnce(ctx context.Context, id, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	if id == "" {
		return fmt.Errorf("%w: no id", ratelimit.ErrInvalid)
	}
	if err := plan.Check(subject, 1); err != nil {
		return err
	}
	for i, n := range units {
		if n < 0 {
			return fmt.Errorf("%w: usage of %d units", ratelimit.ErrInvalid, n)
		}
		units[i] = min(n, ratelimit.MaxLimit)
	}
	q := question{
		op: opCharge, subject: subject, plan: plan,
		arg: min(max(at.Unix(), 0), math.MaxUint32) * int64(time.Second), charge: &charge{id, units},
	}
	var err error
	for range chargeAttempts {
		if _, err = l.ask(ctx, q); err == nil || !errors.Is(err, ratelimit.ErrUnavailable) {
			return err
		}
	}
	return err
}
