package engine

import (
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Decide returns the decision on a request if the plan alone makes it, like the plans that
// [ratelimit.SuspendedPlan] and [ratelimit.UnlimitedPlan] return. If the call is invalid, it
// returns an error that wraps [ratelimit.ErrInvalid]. Otherwise it returns a Decision with no
// Outcome, and the engine decides. The Take and Peek of every engine begin with it:
//
//	if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
//		return d, err
//	}
//
// Such a decision has no States and no Time, and there is nothing to adjust.
func Decide(subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if err := plan.Check(subject, cost); err != nil || Of(plan).Len() > 0 {
		return ratelimit.Decision{}, err
	}
	return alone(plan, cost), nil
}

// alone returns the decision of a plan without quotas.
func alone(p *ratelimit.Plan, cost int64) ratelimit.Decision {
	d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: p, Cost: cost, StrikesLeft: -1}
	if p.Numbers().Suspended {
		d.Outcome = ratelimit.Suspended
	}
	return d
}

// Complete sets Applicable and RetryAfter from the other fields of a decision. A quota with
// less than Cost remaining refuses requests until its Reset, a smooth one until Cost is back,
// and a ban until BanEnds.
func Complete(d *ratelimit.Decision) {
	p := Of(d.Plan)
	d.RetryAfter = 0
	switch {
	case p.Len() == 0:
		return
	case d.Outcome == ratelimit.Allowed || d.Outcome == ratelimit.Skipped:
		showLeast(d)
		return
	}
	refusing, until := -1, gcra.Time(0)
	for i := range p.Len() {
		s := &d.States[i]
		if s.Remaining >= d.Cost {
			continue
		}
		t := gcra.Of(s.Reset, d.Receipt.Rounded[i])
		if p.Kind(i) < 0 {
			t = p.Numbers().Bucket(i).Fits(t, d.Cost)
		}
		if t > until {
			refusing, until = i, t
		}
	}
	until = max(until, gcra.Of(d.BanEnds, 0))
	d.RetryAfter = max(time.Duration(until.Nanos()-d.Time), 1)
	if refusing < 0 {
		showLeast(d)
		return
	}
	d.Applicable = refusing
}

// showLeast makes the quota applicable that has the least remaining.
func showLeast(d *ratelimit.Decision) {
	d.Applicable = 0
	for i := 1; i < Of(d.Plan).Len(); i++ {
		s, a := &d.States[i], &d.States[d.Applicable]
		if s.Remaining < a.Remaining || s.Remaining == a.Remaining && s.Reset > a.Reset {
			d.Applicable = i
		}
	}
}

// Uncounted returns the decision on a request that is admitted at the time now without
// being counted: every quota has its whole limit left. A plan without quotas decides as
// always.
func Uncounted(plan *ratelimit.Plan, cost int64, now time.Time) ratelimit.Decision {
	p := Of(plan)
	if p.Len() == 0 {
		return alone(plan, cost)
	}
	d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: plan, Cost: cost, Time: now.UnixNano(), StrikesLeft: p.Strikes()}
	for i := range p.Len() {
		d.States[i] = ratelimit.State{Remaining: p.Numbers().Quota(i).AtOnce(), Reset: p.WindowEnd(i, d.Time)}
		if p.Kind(i) < 0 { // the bucket is full
			d.States[i].Reset = fixedwindow.SecondsUp(d.Time)
		}
	}
	Complete(&d)
	return d
}
