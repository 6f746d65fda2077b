// Package plan has what engines read of a plan for each request, in a fast form, and what they
// need of a decision. ratelimit.Plan embeds a [Holder] and ratelimit.Receipt a [Receipt], so
// that package engine finds them, and the page of package ratelimit shows nothing of them:
//
//	p := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
//	p.Numbers().Kind(0) // one minute
package plan

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
)

// The bounds of plans, and of what is decided together.
const (
	MaxQuotas  = 4 // of one plan
	MaxCharges = 8 // that are decided together
)

// MaxReason is how long the reason of a ban can be, in bytes.
const MaxReason = 200

// CheckCharges reports whether so many charges can be decided together, and whether there
// is room for as many decisions.
func CheckCharges(charges, decisions int) error {
	switch {
	case charges < 1 || charges > MaxCharges:
		return fmt.Errorf("there must be 1 to %d charges, got %d", MaxCharges, charges)
	case charges != decisions:
		return fmt.Errorf("there must be as many decisions as charges, got %d for %d", decisions, charges)
	}
	return nil
}

// A Quota is what engines need of one.
type Quota struct {
	Limit    int64         // of a soft quota fixedwindow.MaxUnits
	Shown    int64         // what users read as the limit: AtOnce, and of a soft quota less
	Burst    int64         // of a smooth quota; 0: it is not smooth
	Window   time.Duration // of a calendar window a stand-in
	Calendar fixedwindow.Calendar
}

// IsSoft reports whether the quota refuses nothing.
func (q *Quota) IsSoft() bool { return q.Shown < q.AtOnce() }

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

// A Holder gives the type that embeds it the method Numbers.
type Holder struct{ numbers Numbers }

// Numbers returns the numbers of the plan, which are zero in the zero plan.
func (h *Holder) Numbers() *Numbers { return &h.numbers }

// Numbers are the numbers of a plan. They do not change once they are set, and are safe for
// concurrent use.
type Numbers struct {
	Strikes int // left of a subject without strikes; -1: the plan never bans
	Grace   time.Duration
	Most    int64 // that a request can cost; 0 in the zero plan
	Smooth  bool  // a quota is

	Calendar bool // a quota has calendar windows
	Hard     bool // a quota is not soft

	Suspended bool // of a plan without quotas: every request is refused

	n         int
	quotas    [MaxQuotas]Quota
	kinds     [MaxQuotas]time.Duration
	intervals [MaxQuotas]gcra.Span // of smooth quotas

	// Texts is where package middleware/limit keeps the header fields and errors of the
	// plan as long as the plan lives. They are made when they are first needed: a service
	// may make a plan for each request.
	Texts      atomic.Value
	boundaries [MaxQuotas]atomic.Pointer[[5]int64] // of calendar windows, made as the Texts are
}

// Set sets the numbers of a plan. The quotas are valid and in order; there are none in a
// plan that decides alone.
func (n *Numbers) Set(strikes int, grace time.Duration, quotas []Quota) {
	n.Strikes, n.Grace, n.Most = cmp.Or(strikes, -1), grace, math.MaxInt64
	n.n = copy(n.quotas[:], quotas)
	for i := range n.n {
		q := &n.quotas[i]
		n.kinds[i] = q.Kind()
		if q.Burst > 0 {
			n.Smooth, n.intervals[i] = true, gcra.New(q.Limit, q.Window, q.Burst).Interval()
		}
		n.Calendar = n.Calendar || q.IsCalendar()
		n.Hard = n.Hard || !q.IsSoft()
		n.Most = min(n.Most, q.AtOnce())
	}
}

// Len returns the number of quotas.
func (n *Numbers) Len() int { return n.n }

// Quota returns the i-th quota.
func (n *Numbers) Quota(i int) *Quota { return &n.quotas[i] }

// Quotas returns all of them.
func (n *Numbers) Quotas() []Quota { return n.quotas[:n.n] }

// Kind returns the kind of the windows of the i-th quota.
func (n *Numbers) Kind(i int) time.Duration { return n.kinds[i] }

// Find returns the number of the quota that has the kind, or -1.
func (n *Numbers) Find(kind time.Duration) int { return slices.Index(n.kinds[:n.n], kind) }

// Bucket returns the bucket of the i-th quota, which is smooth.
func (n *Numbers) Bucket(i int) gcra.Bucket {
	return gcra.WithInterval(n.intervals[i], n.quotas[i].Limit, n.quotas[i].Burst)
}

// WindowEnd returns when the window of the i-th quota ends that now lies in, in Unix
// seconds. The time now is in Unix nanoseconds.
func (n *Numbers) WindowEnd(i int, now int64) int64 {
	switch q := &n.quotas[i]; {
	case q.Burst > 0:
		return fixedwindow.Seconds(now) + 1 + int64(q.Window/time.Second)
	case !q.IsCalendar():
		return fixedwindow.End(now, q.Window)
	}
	return n.Boundaries(i, now)[2]
}

// WindowStart returns when the window of the i-th quota that ends at a time began. Both
// are in Unix seconds.
func (n *Numbers) WindowStart(i int, end int64) int64 {
	q := &n.quotas[i]
	length := int64(q.Window / time.Second)
	switch {
	case q.Burst > 0:
		return end - n.Bucket(i).Span(q.Limit).Seconds() - 2
	case !q.IsCalendar():
		return end - length
	}
	if kept := n.boundaries[i].Load(); kept != nil && kept[2] == end {
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
func (n *Numbers) Boundaries(i int, now int64) *[5]int64 {
	t := fixedwindow.Seconds(now)
	kept := n.boundaries[i].Load()
	if kept == nil || t < kept[1] || t >= kept[2] {
		c := n.quotas[i].Calendar
		kept = &[5]int64{2: c.After(t)}
		kept[1] = c.Before(kept[2])
		kept[0] = c.Before(kept[1])
		kept[3] = c.After(kept[2])
		kept[4] = c.After(kept[3])
		n.boundaries[i].Store(kept)
	}
	return kept
}

// A Receipt is what an engine needs of a decision, beside its States, to adjust the charge.
type Receipt struct {
	BanReason *string // nil without a ban; with a string here, every decision took 2 ns more
	// Rounded is by how much the Reset of each smooth quota was rounded up.
	Rounded [MaxQuotas]gcra.Fraction
	// Others are the open windows of other plans that were charged as well, in any order. What has
	// no Length is none; the last one then has the generation.
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
