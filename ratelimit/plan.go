package ratelimit

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
)

// A Plan is a name, the quotas that must all hold, and the penalty for subjects
// that keep sending requests after they were limited. It is made by [NewPlan],
// never changes, and may be used by any number of goroutines. The plans of
// [SuspendedPlan] and [UnlimitedPlan] have no quotas. The zero Plan is not valid.
type Plan struct {
	name      string
	quotas    []Quota
	kinds     [MaxQuotas]time.Duration
	smooth    bool    // a quota is
	most      int64   // that a request can cost; 0 in the zero Plan
	always    Outcome // what a plan without quotas decides; 0 for others, and in the zero Plan
	penalty   Penalty
	limits    [MaxQuotas]string // the limits in decimal, for header fields
	intervals [MaxQuotas]uint64 // how long a unit of a smooth quota takes to come back; see Plan.Bucket

	// These are made when they are first needed: a service may make a plan for each
	// request, and most of those plans never need them.
	policy         atomic.Pointer[string] // the RateLimit-Policy field
	resets         [MaxQuotas]atomic.Pointer[resetText]
	denials        denialCache
	withoutPenalty atomic.Pointer[Plan]
	boundaries     [MaxQuotas]atomic.Pointer[[5]int64] // of calendar windows
}

// NewPlan returns a plan with 1 to [MaxQuotas] quotas, each with a window of its own.
// They are kept in order of their windows, the shortest first. A smooth quota and one
// with fixed windows may have the same Window; the smooth one then comes last.
//
// The name is for people, metrics and logs; it may be empty. Usage belongs to a
// subject and a window, never to a plan: if the plan of a subject changes, the
// subject keeps what it has used in the windows that both plans have, and has the
// new limits on its next request. All months are one window in this respect, from
// whichever day and in whichever zone, and so are all days in zones: see
// [Quota.From] and [Quota.In]. What is used of a smooth quota belongs to its Window, apart
// from that of fixed windows.
func NewPlan(name string, penalty Penalty, quotas ...Quota) (*Plan, error) {
	if err := validatePlan(penalty, quotas); err != nil {
		return nil, fmt.Errorf("ratelimit: plan %q: %w", name, err)
	}
	if penalty.Strikes > 0 {
		penalty.Decay = cmp.Or(penalty.Decay, defaultDecay)
	}
	p := &Plan{name: name, quotas: slices.Clone(quotas), penalty: penalty}
	slices.SortFunc(p.quotas, func(a, b Quota) int {
		return cmp.Or(cmp.Compare(a.Window, b.Window), cmp.Compare(a.burst, b.burst))
	})
	p.most = math.MaxInt64
	for i, q := range p.quotas {
		p.kinds[i] = q.kind()
		if q.burst > 0 {
			p.smooth, p.intervals[i] = true, gcra.New(q.Limit, q.Window, q.burst).Interval()
		}
		p.most = min(p.most, q.atOnce())
	}
	p.limits = limitTexts(p.quotas)
	return p, nil
}

// limitTexts returns the limits in decimal. One string holds all digits.
func limitTexts(quotas []Quota) (texts [MaxQuotas]string) {
	var digits [MaxQuotas * 20]byte
	var ends [MaxQuotas]int
	b := digits[:0]
	for i, q := range quotas {
		b = strconv.AppendInt(b, q.atOnce(), 10)
		ends[i] = len(b)
	}
	all, start := string(b), 0
	for i := range quotas {
		texts[i] = all[start:ends[i]]
		start = ends[i]
	}
	return texts
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
	if len(quotas) < 1 || len(quotas) > MaxQuotas {
		return fmt.Errorf("%s given; a plan must have 1 to %d", counted(int64(len(quotas)), "quota"), MaxQuotas)
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

// Name returns the name.
func (p *Plan) Name() string { return p.name }

// Penalty returns the penalty. Its Decay is positive if Strikes is.
func (p *Plan) Penalty() Penalty { return p.penalty }

// Strikes returns Penalty().Strikes without a copy of the rest: engines need it
// for each request.
func (p *Plan) Strikes() int { return p.penalty.Strikes }

// Grace returns Penalty().Grace without a copy of the rest.
func (p *Plan) Grace() time.Duration { return p.penalty.Grace }

// WithoutPenalty returns the plan with the same name and quotas and the zero Penalty.
// Every call returns the same pointer, which is p itself if p has no penalty.
func (p *Plan) WithoutPenalty() *Plan {
	if p.penalty == (Penalty{}) {
		return p
	}
	if p.withoutPenalty.Load() == nil {
		p.withoutPenalty.CompareAndSwap(nil, &Plan{
			name: p.name, quotas: p.quotas, kinds: p.kinds, smooth: p.smooth, intervals: p.intervals, most: p.most, limits: p.limits,
		})
	}
	return p.withoutPenalty.Load()
}

// Len returns the number of quotas, 0 if the plan is suspended or unlimited.
func (p *Plan) Len() int { return len(p.quotas) }

// Quota returns the i-th quota, shortest window first.
func (p *Plan) Quota(i int) Quota { return p.quotas[i] }

// Limit returns Quota(i).Limit without a copy of the rest: engines need it for each
// request.
func (p *Plan) Limit(i int) int64 { return p.quotas[i].Limit }

// Quotas returns a copy of the quotas, shortest window first.
func (p *Plan) Quotas() []Quota { return slices.Clone(p.quotas) }

// String returns the name and the quotas: "free [60/minute 1000/day]", "tester unlimited",
// "debtor suspended".
func (p *Plan) String() string {
	switch p.always {
	case Allowed:
		return p.name + " unlimited"
	case Suspended:
		return p.name + " suspended"
	}
	return fmt.Sprintf("%s %v", p.name, p.quotas)
}

// Check reports whether a request of subject that costs cost units can be
// decided under the plan. An error wraps [ErrInvalid], and [ErrCostExceedsLimit] if the
// cost is over one of the limits. Engines call Decide for requests, and
// [Decision.Adjustment] for adjustments.
func (p *Plan) Check(subject string, cost int64) error {
	if p != nil && subject != "" && cost >= 1 && cost <= p.most {
		return nil
	}
	return p.invalid(subject, cost)
}

// invalid returns the error of Check.
func (p *Plan) invalid(subject string, cost int64) error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: no plan: it is nil, as for a name that a map of plans does not have", ErrInvalid)
	case len(p.quotas) == 0 && p.always == 0:
		return fmt.Errorf("%w: no plan: it is the zero Plan, and not one of NewPlan", ErrInvalid)
	case subject == "":
		return fmt.Errorf("%w: no subject: the name that usage is counted for is empty", ErrInvalid)
	case cost < 1:
		return fmt.Errorf("%w: the cost must be at least 1, got %d", ErrInvalid, cost)
	}
	i := slices.IndexFunc(p.quotas, func(q Quota) bool { return cost > q.atOnce() })
	return fmt.Errorf("%w: cost %d, limit %v", ErrCostExceedsLimit, cost, p.quotas[i])
}

// Uncounted returns the decision on a request that is admitted at the time now
// without being counted, as while the engine is unavailable: every quota has its
// whole limit left. A plan without quotas decides as always.
func (p *Plan) Uncounted(cost int64, now time.Time) Decision {
	if p.always != 0 {
		return p.alone(cost)
	}
	d := Decision{Outcome: Allowed, Plan: p, Cost: cost, Time: now.UnixNano(), StrikesLeft: -1}
	if p.penalty.Strikes > 0 {
		d.StrikesLeft = p.penalty.Strikes
	}
	for i, q := range p.quotas {
		d.States[i] = State{Remaining: q.atOnce(), Reset: p.WindowEnd(i, d.Time)}
		if q.burst > 0 { // the bucket is full
			d.States[i].Reset = fixedwindow.SecondsUp(d.Time)
		}
	}
	d.Settle()
	return d
}
