package memory

import (
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
)

// The state of a smooth quota is the time at which its bucket is full. It is kept where
// another window has its end and usage: its end is that time in seconds, rounded up, and
// used is by how much, in 2⁻³² seconds; both are 0 if the bucket is full. Its length is
// negative, so that no time is in it: the fast path for fixed windows leaves such accounts
// to that for buckets. Its limit is the time in which its bucket fills, in units of
// smoothUnit.
//
// A smooth quota is charged under plans that have it, and not under others, which do not
// say how fast its units come back.

// smoothUnit is 2⁻⁷ seconds, in 2⁻³² seconds. A year has less than 2³² of them.
const smoothUnit = 1 << 25

func (w *window) isSmooth() bool { return w.length < 0 }

func (w *window) full() gcra.Time { return gcra.Of(w.end, uint32(w.used)) }

func (w *window) setFull(t gcra.Time, now int64) {
	w.end, w.used = 0, 0
	if t > gcra.At(now) {
		end, rounded := t.RoundUp()
		w.end, w.used = end, int64(rounded)
	}
}

func bucket(plan *ratelimit.Plan, i int) gcra.Bucket {
	return of(plan).Bucket(i)
}

// smoothLimit is the limit of the window of a bucket.
func smoothLimit(b gcra.Bucket) int64 {
	return roundLimit(max(int64(b.Full()/smoothUnit), 1))
}

// span is how long a window is, or how long a smooth quota needs for its whole limit.
func (w *window) span() time.Duration { return max(w.length, -w.length) }

// heldUntil returns the time, in Unix seconds, until which half of the limit is used; 0
// if less is.
func (w *window) heldUntil() int64 {
	switch {
	case w.isSmooth():
		return w.end - w.limit/256 // half of it, rounded down
	case w.used*2 >= w.limit:
		return w.end
	}
	return 0
}

// amount is what eviction compares: the units used, or the seconds until a bucket is full.
func (w *window) amount(now int64) int64 {
	if w.isSmooth() {
		return w.end - fixedwindow.Seconds(now)
	}
	return w.used
}

// latestEnd returns the latest end that a window may have.
func (w *window) latestEnd(now int64) int64 {
	if w.isSmooth() { // one window, and two seconds that are rounded up
		return fixedwindow.Seconds(now) + int64(w.span()/time.Second) + 2
	}
	return fixedwindow.LatestEnd(now, w.length)
}

// rollSmooth brings the window of the plan's i-th quota, which is smooth, to the time now.
func (a *account) rollSmooth(now int64, plan *ratelimit.Plan, i int) {
	w, b := a.window(of(plan).Kind(i)), bucket(plan, i)
	if w == nil {
		w = a.openWindow(plan, window{length: of(plan).Kind(i), limit: smoothLimit(b)})
	}
	w.limit = min(w.limit, smoothLimit(b))
	w.setFull(b.Limited(w.full(), gcra.At(now)), now)
}

// smoothState puts what is left of the plan's i-th quota, which is smooth, into d.
func (a *account) smoothState(d *ratelimit.Decision, i int) {
	w, b, now := a.window(of(d.Plan).Kind(i)), bucket(d.Plan, i), gcra.At(d.Time)
	full := max(w.full(), now)
	d.States[i].Remaining = b.Left(full, now)
	d.States[i].Reset, d.Receipt.Rounded[i] = full.RoundUp()
}

// chargeSmooth charges the plan's i-th quota, which is smooth and has room.
func (a *account) chargeSmooth(d *ratelimit.Decision, i int) {
	w, b := a.window(of(d.Plan).Kind(i)), bucket(d.Plan, i)
	w.setFull(b.Charged(max(w.full(), gcra.At(d.Time)), d.Cost), d.Time)
	d.States[i].Reset, d.Receipt.Rounded[i] = w.end, uint32(w.used)
}

// adjustSmooth makes the charge d cost so many units more of its i-th quota, or less.
func (a *account) adjustSmooth(d *ratelimit.Decision, i int, units, now int64) {
	w, b := a.window(of(d.Plan).Kind(i)), bucket(d.Plan, i)
	if w == nil {
		if units < 0 {
			return
		}
		w = a.openWindow(d.Plan, window{length: of(d.Plan).Kind(i), limit: smoothLimit(b)})
	}
	w.limit = min(w.limit, smoothLimit(b))
	at, cost := gcra.At(max(d.Time, 0)), min(d.Cost, fixedwindow.MaxUnits)
	w.setFull(b.Adjusted(w.full(), gcra.At(now), at, cost, cost+units), now)
}
