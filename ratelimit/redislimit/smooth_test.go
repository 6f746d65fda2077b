package redislimit_test

import (
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// Requests that share a call of the script are decided one after the other, and so are
// refunds.
func TestSmoothBatches(t *testing.T) {
	const callers = 40
	m, c := mini(t)
	m.SetTime(time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC))
	l, err := redislimit.New(c, redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	redislimit.OneInFlight(l)
	for _, plan := range []*ratelimit.Plan{
		ratelimit.MustPlan("a unit a second", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(7)),
		ratelimit.MustPlan("seven in three seconds", ratelimit.Penalty{}, ratelimit.Quota{Limit: 7, Window: 3 * time.Second}.Smooth(7), ratelimit.PerDay(1000)),
		// The quotient of the script, in floating point, is a little less than eleven.
		ratelimit.MustPlan("eleven a year", ratelimit.Penalty{}, ratelimit.Quota{Limit: 11, Window: fixedwindow.MaxLength}.Smooth(11)),
	} {
		burst := engine.Of(plan).Quota(0).Burst()
		decisions := make([]ratelimit.Decision, callers)
		all := func(do func(i int) error) {
			t.Helper()
			var wg sync.WaitGroup
			for i := range callers {
				wg.Go(func() {
					if err := do(i); err != nil {
						t.Error(err)
					}
				})
			}
			wg.Wait()
		}
		all(func(i int) (err error) {
			decisions[i], err = l.Take(ctx, "a", plan, 1)
			return err
		})
		unit := engine.Of(plan).Quota(0).Window / time.Duration(engine.Of(plan).Quota(0).Limit)
		var left []int64
		for _, d := range decisions {
			if d.Allowed() {
				left = append(left, d.States[0].Remaining)
			} else if wait := d.RetryAfter - unit; wait < 0 || wait > 2*time.Microsecond || d.States[0].Remaining > 0 {
				t.Errorf("%v: a client must wait for %v with %d left, want %v with 0", plan, d.RetryAfter, d.States[0].Remaining, unit)
			}
		}
		slices.Sort(left)
		for i := range burst {
			if int64(len(left)) != burst || left[i] != i {
				t.Fatalf("%v: requests were admitted with %v left, want 0 to %d", plan, left, burst-1)
			}
		}
		all(func(i int) error { return l.Adjust(ctx, "a", &decisions[i], 0, "") })
		if d, err := l.Take(ctx, "a", plan, burst); err != nil || !d.Allowed() {
			t.Errorf("%v: after refunds the whole burst is %v, %v, want allowed", plan, d.Outcome, err)
		}
		if err := l.Reset(ctx, "a"); err != nil {
			t.Fatal(err)
		}
	}
}

// The time at which a bucket is full stands where another window has its end and usage,
// and a full bucket leaves nothing.
func TestSmoothFormat(t *testing.T) {
	m, c := mini(t)
	start := time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC)
	m.SetTime(start)
	l := newLimiter(t, c)
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10))
	charged, err := l.Take(ctx, "a", plan, 3)
	if err != nil {
		t.Fatal(err)
	}
	end := uint32(start.Unix()) + 4 // 33.25 seconds
	want := string([]byte{0x80, 0, 0, 60, byte(end >> 24), byte(end >> 16), byte(end >> 8), byte(end), 0xc0, 0, 0, 0})
	if got, err := c.Get(ctx, m.Keys()[0]).Result(); err != nil || got != want {
		t.Errorf("got %x, %v, want %x", got, err, want)
	}
	m.SetTime(start.Add(3 * time.Second))
	if err := l.Adjust(ctx, "a", &charged, 2, ""); err != nil {
		t.Fatal(err)
	}
	if keys := m.Keys(); len(keys) > 0 {
		t.Errorf("a full bucket leaves %q", keys)
	}
}
