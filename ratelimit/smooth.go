package ratelimit

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/internal/gcra"
)

// Smooth returns the quota without windows: of Limit units in each Window, at most burst
// can be used at once, from 1 to Limit, and the others only as they come back, at even
// intervals. It is a token bucket that holds burst units, or the generic cell rate
// algorithm (GCRA):
//
//	PerMinute(60).Smooth(10) // one unit a second, and ten at once after ten seconds without any
//
// So no burst at a boundary of two windows can pass, and clients that all wait for a limit
// do not all come back at one instant. A decision shows the burst as the limit, what is
// in the bucket as remaining, and the time at which it is full as the reset; RetryAfter
// is exact to the microsecond. Within the length of one Window at most Limit plus burst
// units can be used. To bound a longer time too, combine a smooth quota with fixed windows
// in a plan.
//
// Usage belongs to the subject and the Window, also if the rate or the burst changes. It
// counts requests under plans with a smooth quota of that Window only. A subject can
// owe at most Limit units, if more than the burst is added ([Adjuster]), or if the clock
// steps back. Every admission clears all strikes, so that only a client that sends several
// requests for each one admitted is banned; see [Penalty].
//
// The rate is at most a million units a second. Smooth is for windows of fixed lengths.
// [NewPlan] refuses other quotas with it, and other bursts.
func (q Quota) Smooth(burst int64) Quota {
	if q.burst = burst; burst < 1 {
		q.burst = max(burst, -math.MaxInt64) - 1 // negative, so that 0 is refused too
	}
	return q
}

// Burst returns the largest number of units of a smooth quota that can be used at once,
// and 0 if the quota is not smooth.
func (q Quota) Burst() int64 { return max(q.burst, 0) }

// atOnce is the largest number of units that can be used at once.
func (q *Quota) atOnce() int64 { return cmp.Or(q.burst, q.Limit) }

// kind tells windows apart; see [Plan.Kind].
func (q *Quota) kind() time.Duration {
	if q.burst > 0 {
		return -q.Window
	}
	return q.Window
}

func (q *Quota) validateSmooth() error {
	switch {
	case q.burst == 0:
		return nil
	case q.Calendar():
		return errors.New("Quota.Smooth is for windows of fixed lengths only")
	case q.burst < 0 || q.burst > q.Limit:
		return fmt.Errorf("the burst of Quota.Smooth must be from 1 to the limit of %d, got %d", q.Limit, q.given())
	case q.Limit > gcra.MaxRate*int64(q.Window/time.Second):
		return fmt.Errorf("Quota.Smooth must be at most %d units a second, got %d in %s", gcra.MaxRate, q.Limit, durationText(q.Window))
	}
	return nil
}

// smoothWord comes before the burst in the text form.
const smoothWord = " smooth"

var errBurstText = errors.New("the burst must be a whole number from 1 to the limit, such as 60/minute smooth 10")

func (q *Quota) smoothSuffix() string {
	if q.burst == 0 {
		return ""
	}
	return smoothWord + " " + strconv.FormatInt(q.given(), 10)
}

// given is the burst that Smooth got, also one that is out of range.
func (q *Quota) given() int64 {
	if q.burst < 0 {
		return q.burst + 1
	}
	return q.burst
}

// Kind returns what tells the windows of a subject apart: usage belongs to a subject and
// a kind of window. It is the Window of the i-th quota, for a calendar quota the stand-in,
// and for a smooth quota the Window with a minus sign. The type [Kind] is another thing.
func (p *Plan) Kind(i int) time.Duration { return p.kinds[i] }

// Smooth reports whether a quota of the plan is smooth. Engines that cannot count smooth
// quotas refuse such plans with an error that wraps [ErrInvalid].
func (p *Plan) Smooth() bool { return p.smooth }

// Bucket returns how long one unit of the i-th quota, which is smooth, takes to come back,
// and the burst. The interval is the Window divided by the Limit, in 2⁻³² seconds, rounded
// up. Engines need both for each request, and must not round the interval differently.
// They are 0 if the quota is not smooth.
func (p *Plan) Bucket(i int) (interval uint64, burst int64) {
	return p.intervals[i], p.quotas[i].burst
}

func (p *Plan) bucket(i int) gcra.Bucket {
	interval, burst := p.Bucket(i)
	return gcra.WithInterval(interval, p.Limit(i), burst)
}

// settleSmooth is Settle for plans with smooth quotas, which do not refuse until their
// reset, but until enough units have come back.
func (d *Decision) settleSmooth() {
	refusing, until := -1, gcra.Time(0)
	for i := range d.Plan.quotas {
		s, q := &d.States[i], &d.Plan.quotas[i]
		if s.Remaining >= d.Cost {
			continue
		}
		t := gcra.Of(s.Reset, d.Rounded[i])
		if q.burst > 0 {
			t = d.Plan.bucket(i).Fits(t, d.Cost)
		}
		if t > until {
			refusing, until = i, t
		}
	}
	if d.BanEnds > 0 {
		until = max(until, gcra.Of(d.BanEnds, 0))
	}
	d.RetryAfter = max(time.Duration(until.Nanos()-d.Time), 1)
	if refusing >= 0 {
		d.Applicable = refusing
	} else {
		d.settleLeast()
	}
}

// uncharge sets what is left of the i-th quota, which is smooth, once the units that it was
// charged are given back.
func (d *Decision) uncharge(i int) {
	s, b, now := &d.States[i], d.Plan.bucket(i), gcra.At(d.Time)
	full := b.Adjusted(gcra.Of(s.Reset, d.Rounded[i]), now, now, d.Cost, 0)
	s.Remaining = b.Left(full, now)
	s.Reset, d.Rounded[i] = full.RoundUp()
}

// atMost follows the limit and the window in texts.
func (q *Quota) atMost() string {
	if q.burst == 0 {
		return ""
	}
	return ", at most " + strconv.FormatInt(q.burst, 10) + " at once"
}

// smoothLeftText is the rest of unitsLeftText.
func smoothLeftText(q Quota, left int64) string {
	verb := " are"
	if left == 1 {
		verb = " is"
	}
	return strconv.FormatInt(left, 10) + verb + " left now of the limit of " +
		counted(q.Limit, "unit") + " per " + q.perWindow() + q.atMost() + "."
}

// perWindowOrAtOnce follows the largest cost.
func (q *Quota) perWindowOrAtOnce() string {
	if q.burst > 0 {
		return " at once"
	}
	return " per " + q.perWindow()
}
