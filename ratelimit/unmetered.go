package ratelimit

import "math"

// SuspendedPlan returns a plan without quotas that refuses every request, with 403
// plan_suspended, X-RateLimit-Limit: 0 and X-RateLimit-Remaining: 0. There is no
// Retry-After, since a retry does not help, and a refused request is not a strike.
//
// The plan decides alone: no engine counts its requests or looks for a ban. What a
// subject has used under another plan, and its ban, stay until they end. The same holds
// for [UnlimitedPlan].
func SuspendedPlan(name string) *Plan {
	return &Plan{name: name, most: math.MaxInt64, always: Suspended}
}

// UnlimitedPlan returns a plan without quotas that admits every request, also during a ban,
// and counts none, such as health checks. Responses have none of the header fields.
func UnlimitedPlan(name string) *Plan { return &Plan{name: name, most: math.MaxInt64, always: Allowed} }

// Decide returns the decision on a request if the plan alone makes it, like the plans
// that [SuspendedPlan] and [UnlimitedPlan] return, or the error of Check. Otherwise it returns a
// Decision with no Outcome, and the engine decides. The Take and Peek of every engine
// begin with it:
//
//	if d, err := plan.Decide(subject, cost); err != nil || d.Outcome != 0 {
//		return d, err
//	}
//
// Such a decision has no States and no Time, and there is nothing to adjust.
func (p *Plan) Decide(subject string, cost int64) (Decision, error) {
	if err := p.Check(subject, cost); err != nil || len(p.quotas) > 0 {
		return Decision{}, err
	}
	return p.alone(cost), nil
}

// alone returns the decision of a plan without quotas.
func (p *Plan) alone(cost int64) Decision {
	return Decision{Outcome: p.always, Plan: p, Cost: cost, StrikesLeft: -1}
}
