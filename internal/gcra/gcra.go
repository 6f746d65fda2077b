// Package gcra is the arithmetic of smooth quotas, the generic cell rate algorithm: a
// token bucket whose whole state is one time, at which the bucket is full again.
//
//	b := gcra.New(60, time.Minute, 10) // one unit a second, at most ten at once
//	now := gcra.At(clock.UnixNano())
//	full := b.Limited(full, now)
//	if b.Left(full, now) >= cost {
//		full = b.Charged(full, cost)
//	}
//
// All sums are exact: a unit takes a whole number of 2⁻³² seconds to come back, and
// every engine rounds that number in the same way. The functions are pure.
package gcra

import (
	"slices"
	"time"
)

// A Time is a number of 2⁻³² seconds since 1970. Its upper half are Unix seconds.
type Time uint64

// A Span is a length of time in 2⁻³² seconds.
type Span uint64

// Seconds returns s in seconds, rounded down.
func (s Span) Seconds() int64 { return int64(s / second) }

// A Fraction is a part of a second, in 2⁻³² seconds.
type Fraction uint32

const second = 1 << 32

// At returns the time of Unix nanoseconds, rounded down. The time is not before 1970.
func At(nanos int64) Time {
	s, ns := uint64(nanos)/1e9, uint64(nanos)%1e9
	return Time(s*second + ns*second/1e9)
}

// Of returns the time that was rounded up to a Unix second by a fraction.
func Of(seconds int64, rounded Fraction) Time { return Time(uint64(seconds)*second - uint64(rounded)) }

// RoundUp returns t in Unix seconds, rounded up, and by what fraction.
func (t Time) RoundUp() (seconds int64, rounded Fraction) {
	up := (uint64(t) + second - 1) / second
	return int64(up), Fraction(up*second - uint64(t))
}

// A Bucket holds burst units at most, and limit units come back in each window. A
// subject can owe it limit units. The burst is from 1 to the limit, and the rate at
// most [MaxRate].
type Bucket struct {
	interval     Span // until one unit is back
	limit, burst int64
}

// MaxRate is the largest number of units a second. A rate is rounded down so that a unit
// takes a whole number of 2⁻³² seconds, at this one by less than 0.03 percent.
const MaxRate = 1_000_000

// New returns the bucket of a quota.
func New(limit int64, window time.Duration, burst int64) Bucket {
	length := Span(window/time.Second) * second
	return Bucket{(length + Span(limit) - 1) / Span(limit), limit, burst}
}

// WithInterval returns the bucket of a quota of which a unit comes back in an interval, which New
// has computed.
func WithInterval(interval Span, limit, burst int64) Bucket { return Bucket{interval, limit, burst} }

// Interval returns how long a unit takes to come back.
func (b Bucket) Interval() Span { return b.interval }

// Span returns how long units take to come back: not more of them than the limit.
func (b Bucket) Span(units int64) Span { return Span(min(units, b.limit)) * b.interval }

// Fill returns how long an empty bucket takes to be full.
func (b Bucket) Fill() Span { return b.Span(b.burst) }

// Limited returns the time at which the bucket is full, given the one that an engine
// kept: not before now, and no later than if limit units were owed.
func (b Bucket) Limited(full, now Time) Time {
	return max(min(full, now+Time(b.Span(b.limit))), now)
}

// Burst returns the largest number of units in the bucket.
func (b Bucket) Burst() int64 { return b.burst }

// Left returns the units in the bucket.
func (b Bucket) Left(full, now Time) int64 {
	owed := Span(max(full, now) - now)
	return int64((b.Fill() - min(owed, b.Fill())) / b.interval)
}

// Charged returns the time at which the bucket is full after units that were in it are
// used, given the time before. That is not before now.
func (b Bucket) Charged(full Time, units int64) Time { return full + Time(b.Span(units)) }

// Uncharged returns the time at which the bucket is full if units that were charged now had not
// been.
func (b Bucket) Uncharged(full, now Time, units int64) Time {
	return max(full-min(Time(b.Span(units)), full), now)
}

// A Charge was made at a time, and the bucket was full after it at another.
type Charge struct{ At, Full Time }

// ChargeOf returns the charge that was made at Unix nanoseconds, of a decision that says when
// the bucket is full: in Unix seconds, and by what fraction that was rounded up.
func ChargeOf(nanos, full int64, rounded Fraction) Charge {
	const latest = 1<<32 - 1
	return Charge{At(min(max(nanos, 0), latest*1e9)), Of(min(max(full, 1), latest), rounded)}
}

// A Return says that units of a charge were given back at a time, and how long they take to come
// back. It matters for a window: by then all charges of before have come back.
type Return struct {
	Of   Charge
	At   Time
	Span Span
}

// MaxReturns is how many returns of a bucket are remembered. Of what was charged before all of so
// many, nothing is given back.
const MaxReturns = 32

// GiveBack returns the time at which the bucket is full after units of a charge are given back
// that take a span to come back, except those that have come back by now. It appends what was
// given back to the returns of the bucket, the oldest of which comes first.
//
// While the clock does not step back, no more is admitted than if these units had never
// been charged: units come back in the order in which they were charged, and what has come
// back before them is the same without them. Those of c are back at c.Full at the latest:
// sooner by what was given back, since c was made, of c itself and of charges before it.
// Charges of one instant have no order: c can come after any other of which something was
// given back.
func (b Bucket) GiveBack(full, now Time, c Charge, span Span, returns []Return) (Time, []Return) {
	limited := b.Limited(full, now)
	span = min(span, Span(limited-now))
	if c.At < now { // some of it may be back
		backBy, sooner := c.Full, Span(0)
		for i, r := range slices.Backward(returns) {
			if r.At < c.At {
				break
			}
			if r.Of.At <= c.At {
				sooner += r.Span
			}
			if r.Of.At == c.At {
				backBy = max(backBy, r.Of.Full)
			}
			if i == 0 && len(returns) == MaxReturns {
				return full, returns // others are forgotten
			}
		}
		span = min(span, Span(backBy-min(now+Time(sooner), backBy)))
	}
	if span == 0 {
		return full, returns // as it was: by the plan of the charge, less may be owed
	}
	if len(returns) == MaxReturns {
		returns = append(returns[:0], returns[1:]...)
	}
	return limited - Time(span), append(returns, Return{c, now, span})
}

// Fits returns the time from which on the bucket has so many units, given the time at
// which it is full, if nothing is used meanwhile. It is not before 1970.
func (b Bucket) Fits(full Time, units int64) Time {
	at, fill := full+Time(b.Span(units)), Time(b.Fill())
	return at - min(fill, at)
}

// Nanos returns t in Unix nanoseconds, rounded up to microseconds: the resolution of the
// clock of a Redis server.
func (t Time) Nanos() int64 {
	s, fraction := uint64(t)/second, uint64(t)%second
	return int64(s*1e9 + (fraction*1e6+second-1)/second*1e3)
}
