// Package plan has the numbers of a plan as engines need them for each request. A
// ratelimit.Plan is a [Plan] with the methods of users, and an engine.Plan one with those
// of engines:
//
//	p := (*plan.Plan)(ratelimit.MustPlan("free", penalty, ratelimit.PerMinute(60)))
//	p.Limit(0) // 60
package plan

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
)

// The bounds of plans, and of what is decided together.
const (
	MaxQuotas  = 4 // of one plan
	MaxCharges = 8 // that are decided together
)

// The errors of package ratelimit with the same names.
var (
	ErrInvalid          = errors.New("ratelimit: invalid call")
	ErrCostExceedsLimit = fmt.Errorf("%w: cost exceeds limit", ErrInvalid)
)

// A Quota is what engines need of one.
type Quota struct {
	Limit    int64
	Burst    int64         // of a smooth quota; 0: it is not smooth
	Window   time.Duration // of a calendar window a stand-in
	Calendar fixedwindow.Calendar
}

// IsCalendar reports whether the windows of a quota are calendar windows.
func (q *Quota) IsCalendar() bool { return q.Calendar.In != nil }

// AtOnce is the largest number of units that can be used at once.
func (q *Quota) AtOnce() int64 { return cmp.Or(q.Burst, q.Limit) }

// Kind tells windows apart: the Window, of a smooth quota with a minus sign.
func (q *Quota) Kind() time.Duration {
	if q.Burst > 0 {
		return -q.Window
	}
	return q.Window
}

// A Source is what package ratelimit made the plan of.
type Source interface {
	QuotaText(i int) string // the text form of the i-th quota
}

// A Receipt is what an engine needs of a decision, beside its States, to adjust the charge.
type Receipt struct {
	BanReason *string // nil without a ban; with a string here, every decision took 2 ns more
	// Rounded is by how much the Reset of each smooth quota was rounded up, in 2⁻³² seconds.
	Rounded [MaxQuotas]uint32
	// Others are the open windows of other plans that were charged as well, the shortest
	// first. What has no Length is none; the last one then has the generation.
	Others [2*MaxQuotas - 1]fixedwindow.Window
}

// Generation returns which usage of the subject was charged by Lease: a Reset or a loss begins
// another one. It is not known if there are so many Others that it had no room: with a field of
// its own every decision took longer.
func (r *Receipt) Generation() (generation uint32, known bool) {
	last := &r.Others[len(r.Others)-1]
	return last.End, last.Length == 0
}

// SetGeneration sets it, once Others are set, if there is room.
func (r *Receipt) SetGeneration(generation uint32) {
	if last := &r.Others[len(r.Others)-1]; last.Length == 0 {
		last.End = generation
	}
}

// Always is what a plan without quotas decides.
type Always uint8

const (
	Metered   Always = iota // nothing: it has quotas
	Unlimited               // every request is admitted
	Suspended               // every request is refused
)

// A Plan never changes, and is safe for concurrent use. The zero Plan is not valid.
type Plan struct {
	name    string
	scope   string
	source  Source
	strikes int
	grace   time.Duration
	always  Always

	n         int
	most      int64 // that a request can cost; 0 in the zero Plan
	smooth    bool  // a quota is
	quotas    [MaxQuotas]Quota
	kinds     [MaxQuotas]time.Duration
	intervals [MaxQuotas]uint64 // of smooth quotas

	// These are made when they are first needed: a service may make a plan for each
	// request, and most of those plans never need them.
	texts          atomic.Value
	withoutPenalty atomic.Pointer[Plan]
	boundaries     [MaxQuotas]atomic.Pointer[[5]int64] // of calendar windows
}

// New returns a plan. The quotas are valid and in order, and there are none if always is
// not Metered.
func New(name string, source Source, always Always, strikes int, grace time.Duration, quotas ...Quota) *Plan {
	p := &Plan{name: name, source: source, always: always, strikes: strikes, grace: grace, n: len(quotas), most: math.MaxInt64}
	copy(p.quotas[:], quotas)
	for i := range quotas {
		q := &p.quotas[i]
		p.kinds[i] = q.Kind()
		if q.Burst > 0 {
			p.smooth, p.intervals[i] = true, gcra.New(q.Limit, q.Window, q.Burst).Interval()
		}
		p.most = min(p.most, q.AtOnce())
	}
	return p
}

// WithoutPenalty returns the same plan without strikes. Every call returns the same pointer.
func (p *Plan) WithoutPenalty() *Plan {
	if p.withoutPenalty.Load() == nil {
		p.withoutPenalty.CompareAndSwap(nil, New(p.name, p.source, p.always, 0, 0, p.quotas[:p.n]...).WithScope(p.scope))
	}
	return p.withoutPenalty.Load()
}

// WithScope returns the same plan with another scope.
func (p *Plan) WithScope(scope string) *Plan {
	scoped := New(p.name, p.source, p.always, p.strikes, p.grace, p.quotas[:p.n]...)
	scoped.scope, scoped.most = scope, p.most // the zero Plan stays invalid
	return scoped
}

func (p *Plan) Name() string         { return p.name }
func (p *Plan) Scope() string        { return p.scope }
func (p *Plan) Source() Source       { return p.source }
func (p *Plan) Always() Always       { return p.always }
func (p *Plan) Strikes() int         { return p.strikes }
func (p *Plan) Grace() time.Duration { return p.grace }

func (p *Plan) Len() int                 { return p.n }
func (p *Plan) Quota(i int) *Quota       { return &p.quotas[i] }
func (p *Plan) Limit(i int) int64        { return p.quotas[i].Limit }
func (p *Plan) Kind(i int) time.Duration { return p.kinds[i] }
func (p *Plan) Smooth() bool             { return p.smooth }

// Find returns the number of the quota that has the kind, or -1.
func (p *Plan) Find(kind time.Duration) int { return slices.Index(p.kinds[:p.n], kind) }

// Calendar reports whether a quota has calendar windows.
func (p *Plan) Calendar() bool {
	return slices.ContainsFunc(p.quotas[:p.n], func(q Quota) bool { return q.IsCalendar() })
}

// Bucket returns the bucket of the i-th quota, which is smooth.
func (p *Plan) Bucket(i int) gcra.Bucket {
	return gcra.WithInterval(p.intervals[i], p.quotas[i].Limit, p.quotas[i].Burst)
}

// Texts is where package middleware/limit keeps header fields and errors of the plan.
func (p *Plan) Texts() *atomic.Value { return &p.texts }

// Check reports whether a request can be decided under the plan, which may be nil.
func (p *Plan) Check(subject string, cost int64) error {
	if p != nil && subject != "" && cost >= 1 && cost <= p.most {
		return nil
	}
	return p.invalid(subject, cost)
}

func (p *Plan) invalid(subject string, cost int64) error {
	switch {
	case p == nil:
		return fmt.Errorf("%w: no plan: it is nil, as for a name that a map of plans does not have", ErrInvalid)
	case p.most == 0:
		return fmt.Errorf("%w: no plan: it is the zero Plan, and not one of NewPlan", ErrInvalid)
	case subject == "":
		return fmt.Errorf("%w: no subject: the name that usage is counted for is empty", ErrInvalid)
	case cost < 1:
		return fmt.Errorf("%w: the cost must be at least 1, got %d", ErrInvalid, cost)
	}
	i := slices.IndexFunc(p.quotas[:p.n], func(q Quota) bool { return cost > q.AtOnce() })
	return fmt.Errorf("%w: cost %d, limit %s", ErrCostExceedsLimit, cost, p.source.QuotaText(i))
}

// Excerpt returns a text for an error or the log, such as a subject: of a long one, which a
// client may have sent, the beginning and the length.
func Excerpt(text string) string {
	const most = 200
	if len(text) <= most {
		return text
	}
	return fmt.Sprintf("%s… (%d bytes)", strings.ToValidUTF8(text[:most], ""), len(text))
}

// CheckCharges reports whether there are so many charges, and room for as many decisions.
func CheckCharges(charges, decisions int) error {
	switch {
	case charges < 1 || charges > MaxCharges:
		return fmt.Errorf("%w: there must be 1 to %d charges, got %d", ErrInvalid, MaxCharges, charges)
	case charges != decisions:
		return fmt.Errorf("%w: there must be as many decisions as charges, got %d for %d", ErrInvalid, decisions, charges)
	}
	return nil
}

// The reasons of bans that are not a text of the operator, which never change: a
// [Receipt] points to them.
var (
	Strikes = "strikes"
	ByHand  = "by hand"
)

// MaxReason is how long the reason of a ban can be, in bytes.
const MaxReason = 200

// CheckBan reports whether a ban is valid, and returns its reason.
func CheckBan(subject string, length time.Duration, reason string) (*string, error) {
	switch {
	case subject == "":
		return nil, fmt.Errorf("%w: no subject", ErrInvalid)
	case length <= 0 || length > fixedwindow.MaxLength:
		return nil, fmt.Errorf("%w: the length of a ban must be above 0s and at most %dh, got %v", ErrInvalid, fixedwindow.MaxLength/time.Hour, length)
	case len(reason) > MaxReason || !utf8.ValidString(reason) || strings.ContainsFunc(reason, unicode.IsControl) || strings.TrimSpace(reason) != reason:
		return nil, fmt.Errorf("%w: the reason of a ban must be at most %d bytes of UTF-8, without control characters and without spaces at its ends, got %.*q",
			ErrInvalid, MaxReason, MaxReason, reason)
	case reason == Strikes:
		return &Strikes, nil
	case reason == ByHand || reason == "":
		return &ByHand, nil
	}
	return &reason, nil
}

// WindowEnd returns when the window of the i-th quota ends that now lies in, in Unix
// seconds. The time now is in Unix nanoseconds.
func (p *Plan) WindowEnd(i int, now int64) int64 {
	switch q := &p.quotas[i]; {
	case q.Burst > 0:
		return fixedwindow.Seconds(now) + 1 + int64(q.Window/time.Second)
	case !q.IsCalendar():
		return fixedwindow.End(now, q.Window)
	}
	return p.Boundaries(i, now)[2]
}

// WindowStart returns when the window of the i-th quota that ends at a time began. Both
// are in Unix seconds.
func (p *Plan) WindowStart(i int, end int64) int64 {
	q := &p.quotas[i]
	length := int64(q.Window / time.Second)
	switch {
	case q.Burst > 0:
		return end - int64(p.Bucket(i).Span(q.Limit)>>32) - 2
	case !q.IsCalendar():
		return end - length
	}
	if kept := p.boundaries[i].Load(); kept != nil && kept[2] == end {
		return kept[1]
	}
	if start := q.Calendar.Before(end); q.Calendar.After(start) == end {
		return start
	}
	return end - length
}

// Boundaries returns where four windows of the i-th quota, which has calendar windows, that
// follow each other begin and end, in Unix seconds. The time now, in Unix nanoseconds, lies in
// the second of them. They are computed only if that is another one than the last time.
func (p *Plan) Boundaries(i int, now int64) *[5]int64 {
	t := fixedwindow.Seconds(now)
	kept := p.boundaries[i].Load()
	if kept == nil || t < kept[1] || t >= kept[2] {
		c := p.quotas[i].Calendar
		kept = &[5]int64{2: c.After(t)}
		kept[1] = c.Before(kept[2])
		kept[0] = c.Before(kept[1])
		kept[3] = c.After(kept[2])
		kept[4] = c.After(kept[3])
		p.boundaries[i].Store(kept)
	}
	return kept
}
