// Package engine has what authors of engines call, and the interfaces of engines that can
// do more than [ratelimit.Limiter]: Peeker, Adjuster, MultiTaker, Leaser. An engine is a
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

	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Plan is a [ratelimit.Plan] with what engines need of it for each request. Quotas are
// in order, the shortest window first, and i is the number of one, from 0.
type Plan plan.Plan

// Of returns the numbers of a plan, which is not nil, without a copy.
func Of(p *ratelimit.Plan) *Plan { return (*Plan)(p) }

func inner(p *ratelimit.Plan) *plan.Plan { return (*plan.Plan)(p) }

func (p *Plan) inner() *plan.Plan { return (*plan.Plan)(p) }

// Len returns the number of quotas, 0 if the plan is suspended or unlimited.
func (p *Plan) Len() int { return p.inner().Len() }

// Quota returns the i-th quota.
func (p *Plan) Quota(i int) ratelimit.Quota {
	return p.inner().Source().(interface{ Quota(i int) ratelimit.Quota }).Quota(i)
}

// Kind returns what tells the windows of a subject apart: usage belongs to a subject and
// a kind of window. It is the Window of the i-th quota, for a calendar quota the stand-in,
// and for a smooth quota the Window with a minus sign. A unit of a smooth quota comes back
// in its Window divided by its Limit, in 2⁻³² seconds, rounded up; engines must not round
// it differently.
//
// Engines that cannot count smooth quotas, or in calendar windows, refuse plans with them,
// with an error that wraps [ratelimit.ErrInvalid].
func (p *Plan) Kind(i int) time.Duration { return p.inner().Kind(i) }

// WindowEnd returns when the window of the i-th quota ends that now lies in, in Unix
// seconds. The time now is in Unix nanoseconds, and not before 1970.
//
// A window ends then if it opens now. One of a calendar quota that is open already keeps
// its end, if the subject had another plan or zone when it opened.
//
// A smooth quota has no windows. What is used of it now counts until the end that
// WindowEnd returns, one Window later, unless it has come back before.
func (p *Plan) WindowEnd(i int, now int64) int64 { return p.inner().WindowEnd(i, now) }

// WindowStart returns when the window of the i-th quota that ends at a time began. Both
// are in Unix seconds. If the calendar of the quota has no such window, because it
// opened under another plan, WindowStart returns the earliest time that its kind can
// have begun at.
//
// For the grace of a penalty, the window of a smooth quota is the time in which the whole
// limit comes back, before its Reset, and two seconds, so that it has always begun. That time is
// the Window or, because rates are rounded down, up to 0.03 percent longer.
func (p *Plan) WindowStart(i int, end int64) int64 { return p.inner().WindowStart(i, end) }
