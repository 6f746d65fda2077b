package redisrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/bits"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// maxRate is how many units a second a quota may allow at most.
const maxRate = 100_000

// A Limiter decides in Redis through redis_rate. It is made by [New], and is safe for
// concurrent use. It starts no goroutine, and needs no Close.
//
// # What GCRA does differently
//
// GCRA has no windows. A subject may use its whole limit at once. Then it gets one
// unit back after each window / limit. So 1000/minute admits up to 1,999 requests in
// the first 60 seconds: 1,000 at once, and one more every 60 milliseconds. In
// exchange, the quotas of all subjects do not return at the same instant.
//
// The fields of a Decision mean:
//
//   - Remaining: the units that can be used now.
//   - Reset: when the whole limit can be used again, if nothing more is used.
//   - RetryAfter: when as many units as this request costs have come back, which is
//     mostly much sooner than Reset.
//
// # What it does not do
//
//   - Plans with several quotas are refused. redis_rate decides one limit in each
//     call: a request that the second quota refuses would have been charged to the
//     first, and concurrent callers would see that.
//   - Windows are not aligned to the calendar. Plans with calendar windows, such as
//     [ratelimit.PerMonth], are refused.
//   - Plans with smooth quotas are refused, although they are GCRA too: redis_rate
//     cannot keep what they promise. It rounds its state, a time in floating point, with
//     every request that it admits. As long as the subject keeps using its quota, the
//     errors add up: 1000/second admits one request in 77,000 too many. At the
//     microsecond in which a unit is back, it may still be refused. And if the clock
//     steps back, a subject owes more than the limit. Package ratelimit/redislimit
//     counts smooth quotas exactly.
//   - Plans with a soft quota are refused: GCRA has no count of what is over.
//   - If the limit of a subject changes, it keeps the share that it has used, not the
//     number: 30 used of 60/minute become 150 of 300/minute. Under a plan with
//     another window its usage begins at zero.
//   - There are no strikes and no bans. The penalty of a plan is ignored, and
//     StrikesLeft is always -1.
//   - There are no refunds.
//   - If the clock of the server steps back, subjects that have used anything
//     wait longer by as much.
//   - Times are floating point numbers with steps of 60 nanoseconds. Quotas of
//     more than 100,000 units a second are refused, because they would be
//     wrong by more than 0.3 %.
//
// # What it corrects
//
//   - redis_rate keeps one state for each key, whatever the limit, so that two
//     limits under one key corrupt each other. Here the window is in the key.
//   - Its Remaining is a floating point number rounded down, which is one too low for
//     many limits, most of all on a new key; on a denial it is always 0. Here it
//     follows from the time until the reset, to a microsecond.
type Limiter struct {
	rate      *redis_rate.Limiter
	keyspaces []keyspace
	now       func() time.Time // the clock of this machine, for Time and Reset; the server's decides what is admitted
}

var _ interface {
	ratelimit.Limiter
	engine.Peeker
	Reset(ctx context.Context, subject string) error
} = (*Limiter)(nil)

// New returns an engine that decides through limiter.
func New(limiter *redis_rate.Limiter, opts Options) (*Limiter, error) {
	if limiter == nil {
		return nil, errors.New("redisrate: New needs a redis_rate.Limiter, got nil")
	}
	if err := opts.complete(); err != nil {
		return nil, err
	}
	l := &Limiter{rate: limiter, now: time.Now}
	for _, w := range opts.Windows {
		l.keyspaces = append(l.keyspaces, newKeyspace(opts.Prefix, w))
	}
	return l, nil
}

func (l *Limiter) keyspace(plan *ratelimit.Plan) (*keyspace, error) {
	p := engine.Of(plan)
	q := p.Quota(0)
	switch {
	case p.Len() > 1:
		return nil, fmt.Errorf("%w: redisrate needs a plan with 1 quota, got %d in %v", ratelimit.ErrInvalid, p.Len(), plan)
	case q.Burst() > 0:
		return nil, fmt.Errorf("%w: redisrate cannot count smooth quotas exactly, got %v; use package redislimit", ratelimit.ErrInvalid, q)
	case q == q.Soft():
		return nil, fmt.Errorf("%w: redisrate cannot count soft quotas, got %v; use package redislimit", ratelimit.ErrInvalid, q)
	case fixedwindow.IsCalendar(q.Window):
		return nil, fmt.Errorf("%w: redisrate cannot count in calendar windows, got %v", ratelimit.ErrInvalid, q)
	case q.Limit > maxRate*int64(q.Window/time.Second):
		return nil, fmt.Errorf("%w: redisrate needs a quota of at most %d units a second, got %v", ratelimit.ErrInvalid, maxRate, q)
	case q.Limit > math.MaxInt:
		return nil, fmt.Errorf("%w: redisrate needs a limit of at most %d on this machine, got %v", ratelimit.ErrInvalid, math.MaxInt, q)
	}
	for i := range l.keyspaces {
		if l.keyspaces[i].window == q.Window {
			return &l.keyspaces[i], nil
		}
	}
	return nil, fmt.Errorf("%w: redisrate needs a window of Options.Windows, got %v", ratelimit.ErrInvalid, q)
}

// Take implements [ratelimit.Limiter]. Errors of Redis and of ctx wrap
// [ratelimit.ErrUnavailable]. After one of them the request may have been charged.
func (l *Limiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
		return d, err
	}
	k, err := l.keyspace(plan)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	result, err := l.rate.AllowN(ctx, k.key(subject), limit(plan), int(cost))
	if err != nil {
		return ratelimit.Decision{}, unavailable("take", err)
	}
	return decision(plan, cost, l.now(), result.ResetAfter, result.Allowed > 0), nil
}

// Peek implements [engine.Peeker]. Call it for each plan when the service starts: the error wraps
// [ratelimit.ErrInvalid] if requests cannot be decided under the plan.
func (l *Limiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	if d, err := engine.Decide(subject, plan, 1); err != nil || d.Outcome != 0 {
		return d, err
	}
	k, err := l.keyspace(plan)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	// A cost of 0 leaves the state as it is.
	result, err := l.rate.AllowN(ctx, k.key(subject), limit(plan), 0)
	if err != nil {
		return ratelimit.Decision{}, unavailable("peek", err)
	}
	free := remaining(engine.Of(plan).Quota(0), result.ResetAfter) > 0
	return decision(plan, 1, l.now(), result.ResetAfter, free), nil
}

// Reset forgets the usage of subject in the windows of [Options], with a
// round trip for each. If it fails, some windows may be reset and others not.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	if subject == "" {
		return fmt.Errorf("redisrate: reset: %w: no subject", ratelimit.ErrInvalid)
	}
	for i := range l.keyspaces {
		if err := l.rate.Reset(ctx, l.keyspaces[i].key(subject)); err != nil {
			return unavailable("reset", err)
		}
	}
	return nil
}

// limit is the plan's quota in the terms of redis_rate. The burst is the limit:
// a subject that has used nothing may use all of it at once.
func limit(plan *ratelimit.Plan) redis_rate.Limit {
	q := engine.Of(plan).Quota(0)
	return redis_rate.Limit{Rate: int(q.Limit), Burst: int(q.Limit), Period: q.Window}
}

func unavailable(doing string, err error) error {
	return fmt.Errorf("redisrate: %s: %w: %w", doing, ratelimit.ErrUnavailable, err)
}

// TakeAll implements [engine.MultiTaker] with one call for each charge, in order, within
// the bounds that [engine.TakeInOrder] states.
func (l *Limiter) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return engine.TakeInOrder(ctx, l, charges, decisions)
}

// tick is the resolution of a Redis server's clock. The sums of redis_rate, in
// floating point, are exact to well under it.
const tick = time.Microsecond

// decision works out what became of a request from used, the time until all units
// are back. That is the one number of redis_rate to rely on: its Remaining is a
// floating point number rounded down, and is 0 with every denial.
func decision(plan *ratelimit.Plan, cost int64, now time.Time, used time.Duration, allowed bool) ratelimit.Decision {
	q := engine.Of(plan).Quota(0)
	state := ratelimit.State{
		Remaining: remaining(q, used),
		Reset:     now.Add(used + time.Second - 1).Unix(),
	}
	d := ratelimit.Decision{
		Outcome:     ratelimit.Allowed,
		Plan:        plan,
		Cost:        cost,
		Time:        now.UnixNano(),
		StrikesLeft: -1,
	}
	if !allowed {
		d.Outcome = ratelimit.Limited
		d.RetryAfter = wait(q, used, cost)
		state.Remaining = min(state.Remaining, cost-1) // it may be a tick short of enough
	}
	d.States[0] = state
	return d
}

// remaining is how many units can be used now.
func remaining(q ratelimit.Quota, used time.Duration) int64 {
	free := min(max(q.Window-used+tick, 0), q.Window)
	return mulDiv(q.Limit, int64(free), int64(q.Window))
}

// wait is the time until cost units can be used.
func wait(q ratelimit.Quota, used time.Duration, cost int64) time.Duration {
	needed := time.Duration(mulDiv(int64(q.Window), cost, q.Limit))
	return max(used+needed-q.Window, 0) + tick
}

// mulDiv returns a*b/c, rounded down, for numbers that are not negative with b
// no greater than c. The product may exceed 64 bits: a year in nanoseconds
// leaves nine of them.
func mulDiv(a, b, c int64) int64 {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	quotient, _ := bits.Div64(hi, lo, uint64(c))
	return int64(quotient)
}
