package ratelimit

import (
	"cmp"
	"fmt"
	"slices"
	"sync/atomic"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/plan"
)

// A Plan is a name, the quotas that must all hold, and the penalty for subjects
// that keep sending requests after they were limited. It is made by [NewPlan],
// never changes, and may be used by any number of goroutines. The plans of
// [SuspendedPlan] and [UnlimitedPlan] have no quotas. The zero Plan is not valid.
//
// Authors of engines read its numbers with package ratelimit/engine.
type Plan struct {
	name, scope    string
	quotas         [plan.MaxQuotas]Quota
	penalty        Penalty
	withoutPenalty atomic.Pointer[Plan] // made when it is first needed
	numbers
}

type numbers = plan.Holder // a name that hides it on the page of the package

// newPlan returns a plan. The quotas are valid and in order; none: it decides alone.
func newPlan(name, scope string, penalty Penalty, quotas ...Quota) *Plan {
	p := &Plan{name: name, scope: scope, penalty: penalty}
	var engines [plan.MaxQuotas]plan.Quota
	for i, q := range quotas {
		p.quotas[i] = q
		engines[i] = plan.Quota{Limit: q.Limit, Shown: cmp.Or(q.burst, q.Limit), Burst: q.burst, Window: q.Window}
		if q.soft {
			engines[i].Limit = fixedwindow.MaxUnits
		}
		if q.calendar.is {
			engines[i].Calendar = q.calendar.windows(q.Window)
		}
	}
	p.Numbers().Set(penalty.Strikes, penalty.Grace, engines[:len(quotas)])
	return p
}

// NewPlan returns a plan with 1 to 4 quotas, each with a window of its own.
// They are kept in order of their windows, the shortest first. A smooth quota and one
// with fixed windows may have the same Window; the smooth one then comes last.
//
// The name is for people, metrics and logs; it may be empty. Usage belongs to a subject and a
// window, never to a plan. If the plan of a subject changes, the new limits hold from its next
// request on. The subject keeps what it has used in the windows that both plans have. All
// months are one window in this respect, from whichever day and in whichever zone, and so are
// all days in zones: see [Quota.From] and [Quota.In]. What is used of a smooth quota belongs to
// its Window, apart from what is used of fixed windows.
func NewPlan(name string, penalty Penalty, quotas ...Quota) (*Plan, error) {
	if err := validatePlan(penalty, quotas); err != nil {
		return nil, fmt.Errorf("ratelimit: plan %q: %w", name, err)
	}
	if penalty.Strikes > 0 {
		penalty.Decay = cmp.Or(penalty.Decay, defaultDecay)
	}
	var ordered [plan.MaxQuotas]Quota
	n := copy(ordered[:], quotas)
	slices.SortFunc(ordered[:n], func(a, b Quota) int {
		return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.burst, b.burst))
	})
	return newPlan(name, "", penalty, ordered[:n]...), nil
}

// MustPlan is [NewPlan] for plans that are part of the program. It panics where NewPlan
// returns an error.
func MustPlan(name string, penalty Penalty, quotas ...Quota) *Plan {
	p, err := NewPlan(name, penalty, quotas...)
	if err != nil {
		panic(err)
	}
	return p
}

func validatePlan(penalty Penalty, quotas []Quota) error {
	if len(quotas) < 1 || len(quotas) > plan.MaxQuotas {
		return fmt.Errorf("a plan must have 1 to %d quotas, got %d", plan.MaxQuotas, len(quotas))
	}
	for i, q := range quotas {
		if err := q.validate(); err != nil {
			return fmt.Errorf("quota %d: %w", i+1, err)
		}
		if slices.ContainsFunc(quotas[:i], func(o Quota) bool { return o.kind() == q.kind() }) {
			if q.burst > 0 {
				return fmt.Errorf("quota %d: a second smooth quota with the window %s; each must have a window of its own", i+1, q.windowText())
			}
			return fmt.Errorf("quota %d: a second quota with the window %s; each must have a window of its own", i+1, q.windowText())
		}
	}
	return penalty.validate()
}

// SuspendedPlan returns a plan without quotas that refuses every request, with 403
// plan_suspended, X-RateLimit-Limit: 0 and X-RateLimit-Remaining: 0. There is no
// Retry-After, since a retry does not help, and a refused request is not a strike.
//
// The plan decides alone: no engine counts its requests or looks for a ban. What a
// subject has used under another plan, and its ban, stay until they end. The same holds
// for [UnlimitedPlan].
func SuspendedPlan(name string) *Plan {
	p := newPlan(name, "", Penalty{})
	p.Numbers().Suspended = true
	return p
}

// UnlimitedPlan returns a plan without quotas that admits every request, also during a ban,
// and counts none, such as health checks. Responses have none of the header fields.
func UnlimitedPlan(name string) *Plan { return newPlan(name, "", Penalty{}) }

// Name returns the name.
func (p *Plan) Name() string { return p.name }

// Penalty returns the penalty. Its Decay is positive if Strikes is.
func (p *Plan) Penalty() Penalty { return p.penalty }

// WithoutPenalty returns the plan with the same name and quotas and the zero Penalty.
// Every call returns the same pointer, which is p itself if p has no penalty.
func (p *Plan) WithoutPenalty() *Plan {
	if p.penalty.Strikes == 0 {
		return p
	}
	if p.withoutPenalty.Load() == nil {
		p.withoutPenalty.CompareAndSwap(nil, newPlan(p.name, p.scope, Penalty{}, p.Quotas()...))
	}
	return p.withoutPenalty.Load()
}

// WithScope returns a plan with the same name, quotas and penalty that says whose limits they
// are. It is for the plans of [Caller].Also. A user that is refused then reads "This
// organisation has reached the limit of 4 requests per minute." in place of "You have reached".
// In the fields of limit.DraftRateLimit the names of its quotas begin with the scope, as in
// "organisation-minute". Metrics and logs have the name of the plan, as always.
//
// The scope is a noun that can follow "this": 1 to 40 ASCII letters, digits, spaces and
// hyphens, with a letter or digit at both ends. With anything else but "", which is no scope,
// WithScope panics. Make the plan once, as with [MustPlan].
func (p *Plan) WithScope(scope string) *Plan {
	if scope != "" && !validScope(scope) {
		panic(fmt.Errorf("ratelimit: plan %q: the scope must be 1 to 40 ASCII letters, digits, spaces and hyphens, "+
			"with a letter or digit at both ends, got %.60q", p.Name(), scope))
	}
	scoped := newPlan(p.name, scope, p.penalty, p.Quotas()...)
	scoped.Numbers().Suspended = p.Numbers().Suspended
	scoped.Numbers().Most = p.Numbers().Most // the zero Plan stays invalid
	return scoped
}

// validScope is a loop, since a regular expression would add 265 KB to every program.
func validScope(scope string) bool {
	for i, r := range []byte(scope) {
		inside := i > 0 && i < len(scope)-1
		switch {
		case 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9':
		case inside && (r == ' ' || r == '-'):
		default:
			return false
		}
	}
	return len(scope) <= 40
}

// Scope returns the scope of [Plan.WithScope], or "".
func (p *Plan) Scope() string { return p.scope }

// Quotas returns a copy of the quotas, shortest window first; none if the plan is
// suspended or unlimited.
func (p *Plan) Quotas() []Quota { return slices.Clone(p.quotas[:p.Numbers().Len()]) }

// Quota returns the i-th of Quotas, from 0.
func (p *Plan) Quota(i int) Quota { return p.quotas[i] }

// String returns the name and the quotas: "free [60/minute 1000/day]", "tester unlimited",
// "debtor suspended".
func (p *Plan) String() string {
	switch p.alone() {
	case Allowed:
		return p.name + " unlimited"
	case Suspended:
		return p.name + " suspended"
	}
	return fmt.Sprintf("%s %v", p.name, p.Quotas())
}

// Check reports whether a request of subject that costs cost units can be decided under the
// plan, which may be nil. The Take of every engine returns its error, which wraps
// [ErrInvalid].
func (p *Plan) Check(subject string, cost int64) error {
	if p != nil && subject != "" && cost >= 1 && cost <= p.Numbers().Most {
		return nil
	}
	return p.invalid(subject, cost)
}

func (p *Plan) invalid(subject string, cost int64) error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: no plan: it is nil, as for a name that a map of plans does not have", ErrInvalid)
	case p.Numbers().Most == 0:
		return fmt.Errorf("%w: no plan: it is the zero Plan, and not one of NewPlan", ErrInvalid)
	case subject == "":
		return fmt.Errorf("%w: no subject: the name that usage is counted for is empty", ErrInvalid)
	case cost < 1:
		return fmt.Errorf("%w: the cost must be at least 1, got %d", ErrInvalid, cost)
	}
	i := slices.IndexFunc(p.Numbers().Quotas(), func(q plan.Quota) bool { return cost > q.AtOnce() })
	return fmt.Errorf("%w: cost %d, limit %v", ErrCostExceedsLimit, cost, p.quotas[i])
}

// alone returns the outcome of all requests if the plan has no quotas, and 0 if engines
// decide about them.
func (p *Plan) alone() Outcome {
	switch n := p.Numbers(); {
	case n.Suspended:
		return Suspended
	case n.Len() == 0:
		return Allowed
	}
	return 0
}

// decide returns the decision of a plan that decides alone, or one without an Outcome.
func (p *Plan) decide(subject string, cost int64) (d Decision, err error) {
	if err := p.Check(subject, cost); err != nil || p.alone() == 0 {
		return d, err
	}
	return Decision{Outcome: p.alone(), Plan: p, Cost: cost, StrikesLeft: -1}, nil
}
