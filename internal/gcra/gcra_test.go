package gcra

import (
	"math/rand/v2"
	"slices"
	"testing"
	"time"
)

const start = int64(1_772_366_430_250_000_000)

func TestRoundUp(t *testing.T) {
	for _, c := range []struct {
		at      Time
		seconds int64
		rounded Fraction
	}{{0, 0, 0}, {second, 1, 0}, {second + 1, 2, second - 1}, {2*second - 1, 2, 1}, {second*(1<<32-1) - 1, 1<<32 - 1, 1}} {
		s, r := c.at.RoundUp()
		if s != c.seconds || r != c.rounded || Of(s, r) != c.at {
			t.Errorf("RoundUp of %d: %d and %d, want %d and %d", c.at, s, r, c.seconds, c.rounded)
		}
	}
}

// A client that waits until Nanos is not early, and waits no microsecond too long.
func TestNanos(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		at := At(start) + Time(r.Uint64N(1<<(1+r.IntN(58))))
		n := at.Nanos()
		if n%1000 != 0 || At(n) < at || At(n-1000) >= at {
			t.Fatalf("%d is %d in nanoseconds, want the first microsecond that is not before it", at, n)
		}
		if At(n/1e9*1e9).Nanos() != n/1e9*1e9 {
			t.Fatalf("the second %d is %d in nanoseconds", n/1e9, At(n/1e9*1e9).Nanos())
		}
	}
}

func TestLimits(t *testing.T) {
	b, now := New(60, time.Minute, 10), At(start)
	if got := b.Limited(now-5, now); got != now {
		t.Errorf("a bucket that was full before is full at %d, want %d", got, now)
	}
	most := now + 60*second
	if got := b.Limited(now+3600*second, now); got != most {
		t.Errorf("a subject owes until %d, want at most a window: %d", got, most)
	}
	for name, c := range map[string]struct{ got, want Time }{
		"what was charged now can be taken back": {b.Uncharged(now+5*second, now, 2), now + 3*second},
		"no more than is owed":                   {b.Uncharged(now+5*second, now, 10), now},
		"an empty bucket has a unit in a second": {b.Fits(now+10*second, 1), now + second},
		"a full bucket had it before 1970":       {b.Fits(3*second, 1), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}

// A ledger is what a bucket was charged, one charge of a unit or more after the other.
type ledger struct {
	bucket  Bucket
	now     Time
	full    Time // what the code says
	given   []Return
	entries []entry
	settled []settled
}

type entry struct {
	at   Time
	span Time // that is kept
}

// settled is a charge that may cost fewer or more units later.
type settled struct {
	charge  Charge
	units   int64
	entries []int // of the ledger, the first one first
}

func (l *ledger) take(units int64) (admitted bool) {
	if l.full = l.bucket.Limited(l.full, l.now); l.bucket.Left(l.full, l.now) < units {
		return false
	}
	l.full = l.bucket.Charged(l.full, units)
	l.settled = append(l.settled, settled{Charge{l.now, l.full}, units, nil})
	l.enter(len(l.settled)-1, units)
	return true
}

func (l *ledger) enter(i int, units int64) {
	l.settled[i].entries = append(l.settled[i].entries, len(l.entries))
	l.entries = append(l.entries, entry{l.now, Time(l.bucket.Span(units))})
}

// giveBack gives back units of a charge, and takes away from its entries what the code says.
func (l *ledger) giveBack(i int, units int64) {
	c := &l.settled[i]
	before := l.bucket.Limited(l.full, l.now)
	l.full, l.given = l.bucket.GiveBack(l.full, l.now, c.charge, l.bucket.Span(units), l.given)
	c.units -= units
	span := before - l.bucket.Limited(l.full, l.now)
	for k, left := len(c.entries)-1, span; left > 0; k-- {
		e := &l.entries[c.entries[k]]
		part := min(e.span, left)
		e.span, left = e.span-part, left-part
	}
}

// after returns when the bucket would be full after each entry, if only what is kept had been
// charged, and now.
func (l *ledger) after() (full []Time, now Time) {
	for _, e := range l.entries {
		now = max(now, e.at) + e.span
		full = append(full, now)
	}
	return full, max(now, l.now)
}

// Whatever is given back of any charges at any later time, in any order and in several parts, the
// bucket is never full sooner than if that had never been charged. So between any two
// requests that were admitted, no more is kept than the burst and what comes back meanwhile.
func TestGiveBack(t *testing.T) {
	for seed := range uint64(2000) {
		r := rand.New(rand.NewPCG(seed, 0))
		burst := 1 + r.Int64N(oneOf[int64](r, 30, 300))
		l := ledger{bucket: New(burst+r.Int64N(60), time.Duration(1+r.IntN(90))*time.Second, burst), now: At(start)}
		interval, most, added := int64(l.bucket.Interval()), oneOf(r, 1, 3, burst), r.IntN(3) == 0
		pause := oneOf(r, 1, 2, interval/8, interval, 4*interval)
		takes := 8
		for step := range 300 {
			if step%75 == 0 {
				takes = oneOf(r, 3, 8, 12)
			}
			if r.IntN(3) == 0 {
				l.now += Time(r.Int64N(pause))
			}
			switch n := r.IntN(16); {
			case n < takes:
				l.take(min(1+r.Int64N(most), burst))
			case n < 15 && len(l.settled) > 0:
				i := len(l.settled) - 1 - r.IntN(1+r.IntN(len(l.settled)))
				for k := 0; k < 5 && l.settled[i].units == 0; k++ {
					i = r.IntN(len(l.settled))
				}
				l.giveBack(i, oneOf(r, l.settled[i].units, r.Int64N(l.settled[i].units+1)))
			case added && len(l.settled) > 0: // none is beyond the limit, which would be forgotten
				i, units := r.IntN(len(l.settled)), 1+r.Int64N(3)
				if full := l.bucket.Charged(l.bucket.Limited(l.full, l.now), units); full < l.now+Time(l.bucket.Span(l.bucket.limit)) {
					l.full = full
					l.settled[i].units += units
					l.enter(i, units)
				}
			}
			after, full := l.after()
			if l.bucket.Limited(l.full, l.now) < full {
				t.Fatalf("seed %d: the bucket is full %d sooner than without what was given back", seed, int64(full-l.full))
			}
			for i, e := range l.entries {
				if !added && after[i] > e.at+Time(l.bucket.Fill()) {
					t.Fatalf("seed %d: at %d more than a burst is kept", seed, e.at)
				}
			}
		}
	}
}

func oneOf[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// A burst of requests that fail gets everything back at once that is not back by itself, and
// requests after each other get most of it back under load. What is lost comes back later.
func TestGiveBackAll(t *testing.T) {
	for name, c := range map[string]struct {
		apart Time // between the charges, and between the refunds
		order func(n int) []int
	}{
		"at one instant":              {0, rand.New(rand.NewPCG(1, 0)).Perm},
		"at one instant, in order":    {0, func(n int) []int { return []int{0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19} }},
		"the last first":              {0, func(n int) []int { return []int{19, 18, 17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0} }},
		"one after the other":         {second / 1000, rand.New(rand.NewPCG(2, 0)).Perm},
		"one after the other, slower": {second / 100, rand.New(rand.NewPCG(3, 0)).Perm},
	} {
		l := ledger{bucket: New(60, time.Minute, 20), now: At(start)}
		for range 20 {
			l.take(1)
			l.now += c.apart
		}
		l.now = At(start) + second*3/2
		for _, i := range c.order(20) {
			l.giveBack(i, 1)
		}
		if l.full != l.now {
			t.Errorf("%s: %d of 2⁻³² seconds are not given back", name, l.full-l.now)
		}
	}
}

// Of a client that sends all that fits, as many requests are admitted as if they had cost at once
// what they cost in the end, less at most a twentieth.
func TestGiveBackUnderLoad(t *testing.T) {
	for name, c := range map[string]struct {
		cost     int64
		kept     func(r *rand.Rand) int64
		duration func(r *rand.Rand) Time
	}{
		"half of the requests are refunded": {1, func(r *rand.Rand) int64 { return r.Int64N(2) }, func(*rand.Rand) Time { return second * 3 / 2 }},
		"nine of ten are refunded":          {1, func(r *rand.Rand) int64 { return max(r.Int64N(10)-8, 0) }, func(*rand.Rand) Time { return second }},
		"they cost less in the end":         {10, func(r *rand.Rand) int64 { return 1 + r.Int64N(3) }, func(r *rand.Rand) Time { return Time(r.Int64N(5 * second)) }},
	} {
		r := rand.New(rand.NewPCG(1, 0))
		l := ledger{bucket: New(60, time.Minute, 40), now: At(start)}
		type call struct {
			charge int
			ends   Time
			kept   int64
		}
		var calls []call
		used := int64(0)
		for range 40_000 {
			l.now += second / 20
			calls = slices.DeleteFunc(calls, func(x call) bool {
				if x.ends <= l.now {
					l.giveBack(x.charge, c.cost-x.kept)
				}
				return x.ends <= l.now
			})
			if l.take(c.cost) {
				calls = append(calls, call{len(l.settled) - 1, l.now + c.duration(r), c.kept(r)})
				used += calls[len(calls)-1].kept
			}
		}
		if used < 2000*95/100 {
			t.Errorf("%s: %d units were used in 2000 seconds, want 1900 at least", name, used)
		}
	}
}
