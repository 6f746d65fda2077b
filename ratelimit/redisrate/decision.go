package redisrate

import (
	"math/bits"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

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
