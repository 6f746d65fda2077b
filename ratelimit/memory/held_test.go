package memory_test

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var (
	heldPlan  = ratelimit.MustPlan("held", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(10))
	largePlan = ratelimit.MustPlan("large", ratelimit.Penalty{}, ratelimit.PerMinute(1000), ratelimit.PerDay(1000))
	hourPlan  = ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerHour(1000))
)

// flood sends a request for each of many new subjects. It costs more than the
// subjects that are held have used, which would be forgotten first otherwise.
func flood(t testing.TB, l *memory.Limiter, subjects int) (refused int) {
	t.Helper()
	for i := range subjects {
		_, err := l.Take(ctx, fmt.Sprint("flood ", i), largePlan, 20)
		if errors.Is(err, ratelimit.ErrUnavailable) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return refused
}

// A subject that has used up a quota is held through a flood of new subjects,
// whatever came between.
func TestHeldThrough(t *testing.T) {
	race.Skip(t)
	for name, between := range map[string]func(t *testing.T, l *memory.Limiter, subject string){
		"nothing": func(*testing.T, *memory.Limiter, string) {},
		"a request under a larger plan": func(t *testing.T, l *memory.Limiter, subject string) {
			take(t, l, subject, largePlan)
		},
		"a request under a plan of other windows": func(t *testing.T, l *memory.Limiter, subject string) {
			take(t, l, subject, hourPlan)
		},
		"a refund of a request under a larger plan": func(t *testing.T, l *memory.Limiter, subject string) {
			d := take(t, l, subject, largePlan)
			if err := l.Adjust(ctx, subject, &d, 0, ""); err != nil {
				t.Fatal(err)
			}
		},
		"usage that came from elsewhere": func(t *testing.T, l *memory.Limiter, subject string) {
			d := engine.Uncounted(largePlan, 0, noon)
			if err := l.Adjust(ctx, subject, &d, 1, ""); err != nil {
				t.Fatal(err)
			}
		},
		"a denial": func(t *testing.T, l *memory.Limiter, subject string) { take(t, l, subject, heldPlan) },
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restart: ", restart), func(t *testing.T) {
				clock := enginetest.NewClock(noon)
				opts := memory.Options{MaxSubjects: 500, Now: clock.Now}
				l := newLimiter(t, opts)
				for i := range 100 {
					for range 10 {
						take(t, l, fmt.Sprint(i), heldPlan)
					}
					between(t, l, fmt.Sprint(i))
				}
				if restart {
					d := disk{}
					save(t, l, d)
					opts.Secret = l.Secret()
					l = newLimiter(t, opts)
					if err := l.Load(slices.Collect(maps.Values(d))); err != nil {
						t.Fatal(err)
					}
				}
				if refused := flood(t, l, 5000); refused > 0 {
					t.Errorf("%d new subjects were refused, though 400 places can be had", refused)
				}
				for i := range 100 {
					if d := take(t, l, fmt.Sprint(i), heldPlan); d.Allowed() {
						t.Fatalf("subject %d, which had used up its quota, was admitted again", i)
					}
				}
			})
		}
	}
}

// A downgrade measures what was used by the smaller limit.
func TestHeldAfterADowngrade(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{MaxSubjects: 500, Now: clock.Now})
	for i := range 100 {
		for range 10 {
			take(t, l, fmt.Sprint(i), largePlan)
		}
		take(t, l, fmt.Sprint(i), heldPlan) // limited
	}
	flood(t, l, 5000)
	for i := range 100 {
		if d := take(t, l, fmt.Sprint(i), heldPlan); d.Allowed() {
			t.Fatalf("subject %d, which had used up its quota, was admitted again", i)
		}
	}
}

// A usage is measured by the limits that it had to obey, also when it grows
// under another plan.
func TestHeldByUsageUnderAnotherPlan(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{MaxSubjects: 500, Now: clock.Now})
	for i := range 100 {
		take(t, l, fmt.Sprint(i), heldPlan)
		for range 9 {
			take(t, l, fmt.Sprint(i), largePlan)
		}
	}
	flood(t, l, 5000)
	for i := range 100 {
		if d := take(t, l, fmt.Sprint(i), heldPlan); d.Allowed() {
			t.Fatalf("subject %d, which had used ten units of ten, was admitted again", i)
		}
	}
}

// A subject of which an adjustment has used up a quota is held, and measured by the limits
// of the plan that was adjusted.
func TestHeldByAnAdjustment(t *testing.T) {
	smooth := func(limit, burst int64) *ratelimit.Plan {
		return ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(limit).Smooth(burst))
	}
	for name, c := range map[string]struct {
		before *ratelimit.Plan // of a request
		plan   *ratelimit.Plan // of the charge
		at     time.Duration   // of it
		flood  time.Duration
	}{
		"windows that were not open":          {nil, heldPlan, 0, 0},
		"windows that a larger plan opened":   {largePlan, heldPlan, 0, 0},
		"a window that was moved":             {minutePlan, minutePlan, 30 * time.Second, 31 * time.Second},
		"a full bucket":                       {nil, smooth(60, 10), 0, 0},
		"a bucket that a larger plan charged": {smooth(600, 500), smooth(60, 10), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			clock := enginetest.NewClock(noon)
			l := newLimiter(t, memory.Options{MaxSubjects: 500, Now: clock.Now})
			for i := range 100 {
				if c.before != nil {
					take(t, l, fmt.Sprint(i), c.before)
				}
				d := engine.Uncounted(c.plan, 0, noon.Add(c.at))
				if err := l.Adjust(ctx, fmt.Sprint(i), &d, 10, ""); err != nil {
					t.Fatal(err)
				}
			}
			clock.Set(noon.Add(c.flood))
			flood(t, l, 5000)
			for i := range 100 {
				if d := take(t, l, fmt.Sprint(i), c.plan); d.Allowed() {
					t.Fatalf("subject %d, which had used up its quota, was admitted again", i)
				}
			}
		})
	}
}

// No subject is held for longer than there is a reason to.
func TestNotHeldFor(t *testing.T) {
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	for name, end := range map[string]func(t *testing.T, l *memory.Limiter, clock *enginetest.Clock, all []ratelimit.Decision){
		"a minute that is over": func(_ *testing.T, _ *memory.Limiter, clock *enginetest.Clock, _ []ratelimit.Decision) {
			clock.Set(noon.Add(time.Minute))
		},
		"what was refunded": func(t *testing.T, l *memory.Limiter, _ *enginetest.Clock, all []ratelimit.Decision) {
			for i := range all {
				if err := l.Adjust(ctx, fmt.Sprint(i), &all[i], 0, ""); err != nil {
					t.Fatal(err)
				}
			}
		},
		"a window of a plan that is not known": func(t *testing.T, l *memory.Limiter, clock *enginetest.Clock, all []ratelimit.Decision) {
			for i := range all {
				all[i].Receipt.Others[0] = fixedwindow.Window{Length: 3600, End: uint32(noon.Truncate(time.Hour).Add(time.Hour).Unix())}
				if err := l.Adjust(ctx, fmt.Sprint(i), &all[i], 3, ""); err != nil {
					t.Fatal(err)
				}
			}
			clock.Set(noon.Add(time.Minute))
		},
	} {
		for _, restart := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restart: ", restart), func(t *testing.T) {
				clock := enginetest.NewClock(noon)
				opts := memory.Options{MaxSubjects: 200, Now: clock.Now}
				l := newLimiter(t, opts)
				var all []ratelimit.Decision
				for i := range 200 {
					d, err := l.Take(ctx, fmt.Sprint(i), minute, 6)
					if err != nil {
						t.Fatal(err)
					}
					d.Cost = 2 // of which four are kept, which is less than half
					all = append(all, d)
				}
				if refused := flood(t, l, 10); refused != 10 {
					t.Fatalf("%d of 10 new subjects were refused while all others had used half of a minute", refused)
				}
				if restart {
					d := disk{}
					save(t, l, d)
					opts.Secret = l.Secret()
					l = newLimiter(t, opts)
					if err := l.Load(slices.Collect(maps.Values(d))); err != nil {
						t.Fatal(err)
					}
				}
				end(t, l, clock, all)
				if refused := flood(t, l, 300); refused > 0 {
					t.Errorf("%d of 300 new subjects were refused", refused)
				}
			})
		}
	}
}
