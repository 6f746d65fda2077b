package memory

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/fixedwindow"
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

// expire drops the windows that have ended, and those in which nothing was used.
//
// After the clock stepped back, windows lie in the future. They go on, so that
// no quota is granted twice; but none is left more than one window ahead, so that
// a clock that was years ahead does not lock a subject out for years.
func (a *account) expire(now int64) {
	kept := 0
	for i := range a.n {
		length := a.lengths[i]
		end := min(a.end[i], fixedwindow.LatestEnd(now, length))
		if end*int64(time.Second) <= now || a.used(i) == 0 {
			continue
		}
		a.lengths[kept], a.limits[kept] = length, a.limits[i]
		a.began[kept], a.end[kept] = a.began[i], end
		kept++
	}
	clear(a.lengths[kept:a.n])
	clear(a.limits[kept:a.n])
	a.n = kept
}

// roll brings the account to the time now and to plan: windows that are over are
// dropped, the windows of the plan that are missing begin, and all of these are
// held against the plan's limits.
func (a *account) roll(now int64, plan *ratelimit.Plan) {
	a.expire(now)
	for i := range plan.Len() {
		q := plan.Quota(i)
		limit, w := roundLimit(q.Limit), a.find(q.Window)
		if w < 0 {
			a.open(q.Window, limit, now, plan)
			continue
		}
		a.limits[w] = min(a.limits[w], limit)
	}
}

// open begins a window in its place by length. If there is no room, it takes
// the place of the first window to end that is not the plan's.
func (a *account) open(length time.Duration, limit, now int64, plan *ratelimit.Plan) {
	if a.n == maxWindows {
		a.close(a.dispensable(plan))
	}
	i := 0
	for i < a.n && a.lengths[i] < length {
		i++
	}
	copy(a.lengths[i+1:a.n+1], a.lengths[i:a.n])
	copy(a.limits[i+1:a.n+1], a.limits[i:a.n])
	copy(a.began[i+1:a.n+1], a.began[i:a.n])
	copy(a.end[i+1:a.n+1], a.end[i:a.n])
	a.lengths[i], a.limits[i], a.began[i], a.end[i] = length, limit, a.count, fixedwindow.End(now, length)
	a.n++
}

func (a *account) close(i int) {
	copy(a.lengths[i:], a.lengths[i+1:a.n])
	copy(a.limits[i:], a.limits[i+1:a.n])
	copy(a.began[i:], a.began[i+1:a.n])
	copy(a.end[i:], a.end[i+1:a.n])
	a.n--
	a.lengths[a.n], a.limits[a.n] = 0, 0
}

// dispensable returns the window that ends first of those not in the plan.
func (a *account) dispensable(plan *ratelimit.Plan) int {
	best, q := -1, 0
	for i := range a.n {
		for q < plan.Len() && plan.Quota(q).Window < a.lengths[i] {
			q++
		}
		if q < plan.Len() && plan.Quota(q).Window == a.lengths[i] {
			continue
		}
		if best < 0 || a.end[i] < a.end[best] {
			best = i
		}
	}
	return best
}

// find returns the index of the window of the given length, or -1.
func (a *account) find(length time.Duration) int {
	for i, l := range a.lengths[:a.n] {
		if l == length {
			return i
		}
	}
	return -1
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

// charge adds d.Cost, which fits into the windows of the plan, to every window.
// A window that is not the plan's, and may hold no more, is left full.
func (a *account) charge(d *ratelimit.Decision) {
	for i := range a.n {
		room := ratelimit.MaxLimit - a.used(i)
		a.began[i] += uint32(max(d.Cost-room, 0))
	}
	a.count += uint32(d.Cost)
	for i := range d.Plan.Len() {
		d.States[i].Remaining -= d.Cost
	}
}

// refund takes back what d was charged from those of its windows that are still
// the subject's.
func (a *account) refund(d *ratelimit.Decision) {
	for i := range d.Plan.Len() {
		if w := a.find(d.Plan.Quota(i).Window); w >= 0 && a.end[w] == d.States[i].Reset {
			a.began[w] += uint32(min(d.Cost, a.used(w)))
		}
	}
}

// add adds units[i], at most MaxLimit, to the window of the plan's i-th quota,
// unless the window that the time at lies in is over. It reports whether it added
// any. Units of the next window
// move the subject's window there, with what it holds. The account has been
// rolled to now.
func (a *account) add(plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at, now int64) (added bool) {
	for i := range plan.Len() {
		w := a.find(plan.Quota(i).Window)
		end := fixedwindow.End(at, a.lengths[w])
		if units[i] == 0 || end*int64(time.Second) <= now {
			continue
		}
		a.began[w] -= uint32(min(units[i], ratelimit.MaxLimit-a.used(w)))
		a.end[w] = max(a.end[w], min(end, fixedwindow.LatestEnd(now, a.lengths[w])))
		added = true
	}
	return added
}

// lastEnd returns the end of the last window to end, or 0.
func (a *account) lastEnd() (last int64) {
	for _, end := range a.end[:a.n] {
		last = max(last, end)
	}
	return last
}
