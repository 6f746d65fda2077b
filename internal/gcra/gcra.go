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

import "time"

// A Time is a number of 2⁻³² seconds since 1970. Its upper half are Unix seconds.
type Time uint64

const second = 1 << 32

// At returns the time of Unix nanoseconds, rounded down. The time is not before 1970.
func At(nanos int64) Time {
	s, ns := uint64(nanos)/1e9, uint64(nanos)%1e9
	return Time(s*second + ns*second/1e9)
}

// Of returns the time that was rounded up to a Unix second by so many 2⁻³² seconds.
func Of(seconds int64, rounded uint32) Time { return Time(uint64(seconds)*second - uint64(rounded)) }

// RoundUp returns t in Unix seconds, rounded up, and by how many 2⁻³² seconds.
func (t Time) RoundUp() (seconds int64, rounded uint32) {
	up := (uint64(t) + second - 1) / second
	return int64(up), uint32(up*second - uint64(t))
}

// A Bucket holds burst units at most, and limit units come back in each window. A
// subject can owe it limit units. The burst is from 1 to the limit, and the rate at
// most [MaxRate].
type Bucket struct {
	interval     uint64 // until one unit is back, in 2⁻³² seconds
	limit, burst int64
}

// MaxRate is the largest number of units a second. A rate is rounded down so that a unit
// takes a whole number of 2⁻³² seconds, at this one by less than 0.03 percent.
const MaxRate = 1_000_000

// New returns the bucket of a quota.
func New(limit int64, window time.Duration, burst int64) Bucket {
	length := uint64(window/time.Second) * second
	return Bucket{(length + uint64(limit) - 1) / uint64(limit), limit, burst}
}

// WithInterval returns the bucket of a quota of which a unit comes back in a number of
// 2⁻³² seconds, which New has computed.
func WithInterval(interval uint64, limit, burst int64) Bucket { return Bucket{interval, limit, burst} }

// Interval returns how long a unit takes to come back, in 2⁻³² seconds.
func (b Bucket) Interval() uint64 { return b.interval }

// Span returns how long units take to come back, in 2⁻³² seconds: not more of them than
// the limit.
func (b Bucket) Span(units int64) uint64 { return uint64(min(units, b.limit)) * b.interval }

// Full returns how long an empty bucket takes to be full, in 2⁻³² seconds.
func (b Bucket) Full() uint64 { return b.Span(b.burst) }

// Limited returns the time at which the bucket is full, given the one that an engine
// kept: not before now, and no later than if limit units were owed.
func (b Bucket) Limited(full, now Time) Time {
	return max(min(full, now+Time(b.Span(b.limit))), now)
}

// Burst returns the largest number of units in the bucket.
func (b Bucket) Burst() int64 { return b.burst }

// Left returns the units in the bucket.
func (b Bucket) Left(full, now Time) int64 {
	owed := uint64(max(full, now) - now)
	return int64((b.Full() - min(owed, b.Full())) / b.interval)
}

// Charged returns the time at which the bucket is full after units that were in it are
// used, given the time before. That is not before now.
func (b Bucket) Charged(full Time, units int64) Time { return full + Time(b.Span(units)) }

// Uncharged returns the time at which the bucket is full if units that were charged now had not
// been.
func (b Bucket) Uncharged(full, now Time, units int64) Time {
	return max(full-min(Time(b.Span(units)), full), now)
}

// A Charge was made at a time, after which the bucket was full at another: the end of its own
// piece of the bucket's time. Each time that units of it are given back, the end moves back.
type Charge struct{ At, Full Time }

// ChargeOf returns the charge that was made at Unix nanoseconds, of a decision that says when
// the bucket is full: in Unix seconds, and by how many 2⁻³² seconds that was rounded up.
func ChargeOf(nanos, full int64, rounded uint32) Charge {
	const latest = 1<<32 - 1
	return Charge{At(min(max(nanos, 0), latest*1e9)), Of(min(max(full, 1), latest), rounded)}
}

// Returns are what must be known of units that were given back, to give back more. They matter
// until a window after Until: by then all charges of before have come back. Zero: there were none.
type Returns struct{ From, Until Time }

// GiveBack returns the time at which the bucket is full after units of a charge are given back
// that take a span to come back, except those that have come back by now.
//
// A charge may give back a span if the bucket, net of all that was given back, has always owed
// at least that much since the charge: then it was never full meanwhile, and without these units
// it would have been full sooner by their span ever since. Returns tell so without a list of
// charges. They begin with a first return, and nothing else was given back after From and before
// it. Since that return the bucket has always owed what comes back by Until, as charges only add,
// and each return moves Until back by its own span. Before it, the pieces of the charges made
// after From lie one after the other, and each gives back at most what of its own piece lies
// ahead. So all that they give back together was owed. Of other charges nothing is given back,
// and their units come back by themselves.
func (b Bucket) GiveBack(full, now Time, c Charge, span Time, given *Returns) Time {
	limited := b.Limited(full, now)
	from, last := given.Until, limited
	if now < given.Until {
		from, last = given.From, min(limited, given.Until)
	}
	span = min(span, c.Full-min(now, c.Full), last-now)
	if span == 0 || c.At <= from {
		return full // as it was: by the plan of the charge, less may be owed
	}
	*given = Returns{from, last - span}
	return limited - span
}

// Fits returns the time from which on the bucket has so many units, given the time at
// which it is full, if nothing is used meanwhile. It is not before 1970.
func (b Bucket) Fits(full Time, units int64) Time {
	at, fill := full+Time(b.Span(units)), Time(b.Full())
	return at - min(fill, at)
}

// Nanos returns t in Unix nanoseconds, rounded up to microseconds: the resolution of the
// clock of a Redis server.
func (t Time) Nanos() int64 {
	s, fraction := uint64(t)/second, uint64(t)%second
	return int64(s*1e9 + (fraction*1e6+second-1)/second*1e3)
}
