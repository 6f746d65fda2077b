// Package engine is for authors of engines. It also has the interfaces of engines that can do more
// than [ratelimit.Limiter]: Peeker, Adjuster, MultiTaker, Banner, Leaser and Holder. An engine is a
// [ratelimit.Limiter] that counts usage itself:
//
//	func (e *Engine) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
//		if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
//			return d, err
//		}
//		d := ratelimit.Decision{Plan: plan, Cost: cost, Time: now.UnixNano()}
//		p := engine.Of(plan)
//		for i := range p.Len() {
//			// The window of p.Kind(i) that ends at p.WindowEnd(i, d.Time): fill d.States[i].
//		}
//		// Set d.Outcome, charge all windows or none, and then
//		engine.Complete(&d)
//		return d, nil
//	}
//
// Package ratelimit/enginetest tests engines.
package engine

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// The bounds of plans, and of what is decided together.
const (
	MaxQuotas  = 4 // of one plan
	MaxCharges = 8 // that are decided together
)

// A Plan is a [ratelimit.Plan] with what engines need of it for each request. Quotas are
// in order, the shortest window first, and i is the number of one, from 0.
type Plan struct{ *ratelimit.Plan }

// Of returns the plan with what engines need of it, without a copy. It is not nil.
func Of(p *ratelimit.Plan) Plan { return Plan{p} }

// Len returns the number of quotas, 0 if the plan is suspended or unlimited.
func (p Plan) Len() int { return p.Numbers().Len() }

// Limit returns the Limit of the i-th quota. Of a soft quota it is 9007199254740991: engines
// count it like any other, and [ratelimit.Decision] shows its own limit.
func (p Plan) Limit(i int) int64 { return p.Numbers().Quota(i).Limit }

// Kind returns what tells the windows of a subject apart: usage belongs to a subject and
// a kind of window. It is the Window of the i-th quota, for a calendar quota the stand-in,
// and for a smooth quota the Window with a minus sign.
//
// Engines that cannot count smooth quotas, or in calendar windows, refuse plans with them,
// with an error that wraps [ratelimit.ErrInvalid].
func (p Plan) Kind(i int) time.Duration { return p.Numbers().Kind(i) }

// Find returns the number of the quota that has the kind, or -1.
func (p Plan) Find(kind time.Duration) int { return p.Numbers().Find(kind) }

// Interval returns how long a unit of the i-th quota, which is smooth, takes to come back: its
// Window divided by its Limit, in 2⁻³² seconds, rounded up. Engines must not round it
// differently.
func (p Plan) Interval(i int) uint64 { return uint64(p.Numbers().Bucket(i).Interval()) }

// Smooth reports whether a quota is smooth.
func (p Plan) Smooth() bool { return p.Numbers().Smooth }

// Strikes returns the StrikesLeft of a subject without strikes: -1 if the plan never bans.
func (p Plan) Strikes() int { return p.Numbers().Strikes }

// WindowEnd returns when the window of the i-th quota ends that now lies in, in Unix
// seconds. The time now is in Unix nanoseconds, and not before 1970.
//
// A window ends then if it opens now. One of a calendar quota that is open already keeps
// its end, if the subject had another plan or zone when it opened.
//
// A smooth quota has no windows. What is used of it now counts until the end that
// WindowEnd returns, one Window later, unless it has come back before.
func (p Plan) WindowEnd(i int, now int64) int64 { return p.Numbers().WindowEnd(i, now) }

// WindowStart returns when the window of the i-th quota that ends at a time began. Both
// are in Unix seconds. If the calendar of the quota has no such window, because it
// opened under another plan, WindowStart returns the earliest time that its kind can
// have begun at.
//
// For the grace of a penalty, the window of a smooth quota is the time in which the whole limit
// comes back, before its Reset, and two seconds. So it has always begun. That time is the
// Window or, because rates are rounded down, up to 0.03 percent longer.
func (p Plan) WindowStart(i int, end int64) int64 { return p.Numbers().WindowStart(i, end) }
