package enginetest

import (
	"cmp"
	"math/big"
	"time"

	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
)

// The model keeps of a smooth quota when its bucket is full again, as a number of 2⁻³²
// seconds since 1970, or 0 if it is. A unit comes back in a whole number of them.

// A bucket is a smooth quota at one time.
type bucket struct {
	now, full *big.Int
	interval  *big.Int // until one unit is back
	quota     ratelimit.Quota
}

func (s *subject) bucket(now time.Time, q ratelimit.Quota) bucket {
	b := bucket{now: fractions(now), quota: q}
	limit := big.NewInt(q.Limit)
	b.interval = new(big.Int).Lsh(big.NewInt(int64(q.Window/time.Second)), 32)
	b.interval.Add(b.interval, new(big.Int).Sub(limit, big.NewInt(1))).Div(b.interval, limit) // rounded up
	b.full = b.now
	if w := s.windows[-q.Window]; w != nil && w.full.Cmp(b.now) > 0 {
		// No subject owes more than the limit.
		b.full = smallest(w.full, new(big.Int).Add(b.now, b.span(q.Limit)))
	}
	return b
}

// span is how long units take to come back.
func (b *bucket) span(units int64) *big.Int { return new(big.Int).Mul(big.NewInt(units), b.interval) }

// left is what is in the bucket.
func (b *bucket) left() int64 {
	owed := new(big.Int).Sub(b.full, b.now)
	left := new(big.Int).Sub(b.span(b.quota.Burst()), owed)
	return max(left.Div(left, b.interval).Int64(), 0)
}

// charge makes the bucket be full later.
func (s *subject) charge(b bucket, units int64) {
	s.set(b, new(big.Int).Add(b.full, b.span(units)))
}

// set sets when the bucket is full. The subject owes at most the limit, and at least
// nothing.
func (s *subject) set(b bucket, full *big.Int) {
	full = smallest(full, new(big.Int).Add(b.now, b.span(b.quota.Limit)))
	if full.Cmp(b.now) <= 0 {
		full = new(big.Int)
	}
	s.windows[-b.quota.Window] = &usage{full: full}
}

// adjustSmooth makes a charge cost other units of the i-th quota, which is smooth.
func (s *subject) adjustSmooth(now time.Time, q ratelimit.Quota, i int, d *ratelimit.Decision, units int64) {
	b, kind := s.bucket(now, q), -q.Window
	switch {
	case units > d.Cost:
		if s.windows[kind] == nil {
			s.insert(d.Plan, kind, nil)
		}
		s.charge(b, units-d.Cost)
	case s.windows[kind] != nil:
		end := new(big.Int).Lsh(big.NewInt(min(max(d.States[i].Reset, 1), 1<<32-1)), 32)
		end.Sub(end, big.NewInt(int64(d.Receipt.Rounded[i])))
		span := b.span(min(d.Cost, q.Limit) - min(units, q.Limit))
		if back := s.giveBack(b, fractions(time.Unix(0, max(d.Time, 0))), end, span); back.Sign() > 0 {
			s.set(b, new(big.Int).Sub(b.full, back))
		}
	}
}

// A giveback is what was given back of charges that were made at a time of, after which the bucket
// was full at a time full: see GiveBack in package gcra, which has the reasons.
// Of a subject maxReturns are remembered.
type giveback struct{ of, full, at, span *big.Int }

const maxReturns = 32

// giveBack returns how much is given back of a span of a charge that was made at a time, and after
// which the bucket was full at another.
func (s *subject) giveBack(b bucket, of, full, span *big.Int) *big.Int {
	kind := -b.quota.Window
	before := s.returns[kind]
	left := new(big.Int).Sub(b.full, b.now)
	if of.Cmp(b.now) < 0 {
		after, given := full, new(big.Int)
		for i := len(before) - 1; i >= 0 && before[i].at.Cmp(of) >= 0; i-- {
			g := before[i]
			if i == 0 && len(before) == maxReturns {
				return new(big.Int)
			}
			if g.of.Cmp(of) <= 0 {
				given.Add(given, g.span)
			}
			if g.of.Cmp(of) == 0 && g.full.Cmp(after) > 0 {
				after = g.full
			}
		}
		left = smallest(left, given.Sub(after, given).Sub(given, b.now))
	}
	back := smallest(span, left)
	if back.Sign() <= 0 {
		return new(big.Int)
	}
	s.returns[kind] = append(before[max(len(before)-maxReturns+1, 0):], giveback{of, full, b.now, back})
	return back
}

// fractions is the time in 2⁻³² seconds since 1970, rounded down.
func fractions(t time.Time) *big.Int {
	n := new(big.Int).Add(new(big.Int).Mul(big.NewInt(t.Unix()), big.NewInt(1e9)), big.NewInt(int64(t.Nanosecond())))
	return n.Lsh(n, 32).Div(n, big.NewInt(1e9))
}

// ends returns when a window ends, or a bucket is full, in Unix seconds, rounded up, and
// by how many 2⁻³² seconds.
func (u *usage) ends() (seconds int64, rounded gcra.Fraction) {
	if u.full == nil {
		return u.end.Unix(), 0
	}
	up := new(big.Int).Neg(u.full)
	up.Rsh(up, 32).Neg(up)
	return up.Int64(), gcra.Fraction(new(big.Int).Sub(new(big.Int).Lsh(up, 32), u.full).Uint64())
}

func smallest(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

// byKind orders windows: the shortest first, and smooth quotas last.
func byKind(a, b time.Duration) int {
	if (a < 0) != (b < 0) {
		return cmp.Compare(b, a)
	}
	return cmp.Compare(max(a, -a), max(b, -b))
}
