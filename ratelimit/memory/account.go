package memory

import (
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// maxWindows is how many windows of one subject are counted at once: those of
// its plan, and those of a plan it had before that have not ended.
const maxWindows = 2 * ratelimit.MaxQuotas

// An account is what a slot says, in a form to reckon with. Its methods are the
// arithmetic of fixed windows: they take the time as an argument and touch
// nothing else.
type account struct {
	count uint32 // the meter's
	shape
	began [maxWindows]uint32 // the meter's reading at the beginning of the window
	end   [maxWindows]int64  // Unix seconds
}

// windowEnd returns the end, in Unix seconds, of the window that now is in.
func windowEnd(now int64, length time.Duration) int64 {
	return (now/int64(length) + 1) * int64(length/time.Second)
}

// roll brings the account to the time now and the windows of plan: windows that
// have ended are dropped, as are those in which nothing was used, and those of
// the plan that are missing begin.
//
// After the clock stepped back, windows lie in the future. They go on, so that
// no quota is granted twice; but none is left more than one window ahead, so that
// a clock that was years ahead does not lock anybody out for years.
func (a *account) roll(now int64, plan *ratelimit.Plan) {
	kept := 0
	for i := range a.n {
		length := a.lengths[i]
		end := min(a.end[i], windowEnd(now, length)+int64(length/time.Second))
		if end*int64(time.Second) <= now || a.used(i) == 0 {
			continue
		}
		a.lengths[kept], a.began[kept], a.end[kept] = length, a.began[i], end
		kept++
	}
	clear(a.lengths[kept:])
	a.n = kept
	for i := range plan.Len() {
		if length := plan.Quota(i).Window; a.find(length) < 0 {
			a.open(length, now, plan)
		}
	}
}

// open begins a window in its place by length. If there is no room, it takes
// the place of the first window to end that is not the plan's.
func (a *account) open(length time.Duration, now int64, plan *ratelimit.Plan) {
	if a.n == maxWindows {
		a.close(a.dispensable(plan))
	}
	i := 0
	for i < a.n && a.lengths[i] < length {
		i++
	}
	copy(a.lengths[i+1:a.n+1], a.lengths[i:a.n])
	copy(a.began[i+1:a.n+1], a.began[i:a.n])
	copy(a.end[i+1:a.n+1], a.end[i:a.n])
	a.lengths[i], a.began[i], a.end[i] = length, a.count, windowEnd(now, length)
	a.n++
}

func (a *account) close(i int) {
	copy(a.lengths[i:], a.lengths[i+1:a.n])
	copy(a.began[i:], a.began[i+1:a.n])
	copy(a.end[i:], a.end[i+1:a.n])
	a.n--
	a.lengths[a.n] = 0
}

// dispensable returns the window that ends first of those not in the plan.
func (a *account) dispensable(plan *ratelimit.Plan) int {
	best := -1
	for i := range a.n {
		inPlan := slices.ContainsFunc(plan.Quotas(), func(q ratelimit.Quota) bool { return q.Window == a.lengths[i] })
		if !inPlan && (best < 0 || a.end[i] < a.end[best]) {
			best = i
		}
	}
	return best
}

// find returns the index of the window of the given length, or -1.
func (a *account) find(length time.Duration) int {
	return slices.Index(a.lengths[:a.n], length)
}

// used returns what was used in window i.
func (a *account) used(i int) int64 { return int64(a.count - a.began[i]) }

// states puts what each quota of the plan has left into d, and reports whether
// d.Cost fits into all of them. The account has been rolled.
func (a *account) states(d *ratelimit.Decision) (fits bool) {
	fits = true
	for i := range d.Plan.Len() {
		q := d.Plan.Quota(i)
		w := a.find(q.Window)
		left := max(q.Limit-a.used(w), 0)
		d.States[i] = ratelimit.State{Remaining: left, Reset: a.end[w]}
		fits = fits && left >= d.Cost
	}
	return fits
}

// charge adds d.Cost to every window. A window that is not the plan's, and may
// hold no more, is left full.
func (a *account) charge(d *ratelimit.Decision) {
	for i := range a.n {
		a.began[i] += uint32(max(a.used(i)+d.Cost-ratelimit.MaxLimit, 0))
	}
	a.count += uint32(d.Cost)
	for i := range d.Plan.Len() {
		d.States[i].Remaining -= d.Cost
	}
}

// refund takes cost back from the windows that the time at lies in.
func (a *account) refund(at, cost int64) {
	for i := range a.n {
		if windowEnd(at, a.lengths[i]) == a.end[i] {
			a.began[i] += uint32(min(cost, a.used(i)))
		}
	}
}

// add adds units[i] to the window of the plan's i-th quota, if the time at lies
// in it. The account has been rolled.
func (a *account) add(plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at int64) {
	for i := range plan.Len() {
		if w := a.find(plan.Quota(i).Window); windowEnd(at, a.lengths[w]) == a.end[w] {
			a.began[w] -= uint32(min(units[i], ratelimit.MaxLimit-a.used(w)))
		}
	}
}

// lastEnd returns the end of the last window to end, or 0.
func (a *account) lastEnd() (last int64) {
	for _, end := range a.end[:a.n] {
		last = max(last, end)
	}
	return last
}
