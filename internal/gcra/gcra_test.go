package gcra

import (
	"math/rand/v2"
	"testing"
	"time"
)

const start = int64(1_772_366_430_250_000_000)

func TestBurstThenRate(t *testing.T) {
	for _, q := range []struct {
		limit, burst int64
		window       time.Duration
	}{
		{60, 10, time.Minute}, {7, 7, time.Minute}, {1, 1, 366 * 24 * time.Hour}, {MaxRate, 1, time.Second},
		{1000, 3, 7 * time.Second}, {1<<32 - 1, 5, 366 * 24 * time.Hour},
	} {
		b := New(q.limit, q.window, q.burst)
		now := At(start)
		full := b.Limited(0, now)
		for left := q.burst; left > 0; left-- {
			if got := b.Left(full, now); got != left {
				t.Fatalf("%+v: %d units are left, want %d", q, got, left)
			}
			full = b.Charged(full, 1)
		}
		if got := b.Left(full, now); got != 0 {
			t.Fatalf("%+v: %d units are left after the burst", q, got)
		}
		// Exactly when a unit is back, to the microsecond, one fits.
		for range 3 {
			at := b.Fits(full, 1)
			if b.Left(full, at-1) != 0 || b.Left(full, at) != 1 {
				t.Fatalf("%+v: %d and %d units are left around the time at which one fits, want 0 and 1",
					q, b.Left(full, at-1), b.Left(full, at))
			}
			full = b.Charged(full, 1)
		}
		// In the long run no more than the limit comes back in a window, and hardly less.
		end := now + Time(uint64(q.window/time.Second)*second)
		if owed := b.Span(q.limit); now+Time(owed) < end || float64(owed) > float64(end-now)*1.00024 {
			t.Errorf("%+v: %d units come back in %d of 2⁻³² seconds, want a little more than %d", q, q.limit, owed, end-now)
		}
	}
}

func TestRoundUp(t *testing.T) {
	for _, c := range []struct {
		at      Time
		seconds int64
		rounded uint32
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
		"a refund never reaches beyond now":      {b.Adjusted(now+5*second, now, now, 10, 0), now},
		"a refund moves the time back":           {b.Adjusted(now+5*second, now, now, 2, 0), now + 3*second},
		"nor before 1970":                        {b.Adjusted(4*second, 3*second, 3*second, 10, 0), 3 * second},
		"what came back is not given back":       {b.Adjusted(now+9*second, now, now-7*second, 9, 0), now + 7*second},
		"nor if all did":                         {b.Adjusted(now+9*second, now, now-9*second, 9, 0), now + 9*second},
		"what stays charged comes back first":    {b.Adjusted(now+9*second, now, now-3*second, 9, 4), now + 4*second},
		"a refund owes at most a window":         {b.Adjusted(now+3600*second, now, now, 10, 0), most - 10*second},
		"more units are owed":                    {b.Adjusted(now+5*second, now, now, 0, 20), now + 25*second},
		"at most a window":                       {b.Adjusted(now+5*second, now, now, 0, 1<<40), most},
		"those beside other charges in full":     {b.Adjusted(now+5*second, now, now-30*second, 0, 5), now + 10*second},
		"of a full bucket from now on":           {b.Adjusted(0, now, now-30*second, 0, 5), now + 5*second},
		"a clock that is ahead counts as now":    {b.Adjusted(0, now, now+1000*second, 0, 5), now + 5*second},
		"an empty bucket has a unit in a second": {b.Fits(now+10*second, 1), now + second},
		"a full bucket had it before 1970":       {b.Fits(3*second, 1), 0},
	} {
		if c.got != c.want {
			t.Errorf("%s: %d, want %d", name, c.got, c.want)
		}
	}
}
