package memory

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

var (
	keptPlan  = ratelimit.MustPlan("kept", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(10))
	largePlan = ratelimit.MustPlan("large", ratelimit.Penalty{}, ratelimit.PerMinute(1000), ratelimit.PerDay(1000))
	hourPlan  = ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerHour(1000))
)

// flood sends a request for each of many new subjects. It costs more than the
// subjects that are kept have used, which would be forgotten first otherwise.
func flood(t testing.TB, l *Limiter, subjects int) (refused int) {
	t.Helper()
	for i := range subjects {
		_, err := l.Take(ctx, fmt.Sprint("flood ", i), largePlan, 400)
		if errors.Is(err, ratelimit.ErrUnavailable) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
	}
	return refused
}

// A subject that is banned, has strikes, or has used half of the smallest limit of a window is
// kept through a flood of new subjects, whatever came between, also after a restart.
func TestKept(t *testing.T) {
	race.Skip(t)
	strict := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	striking := ratelimit.MustPlan("striking", strict, ratelimit.PerMinute(100), ratelimit.PerDay(3))
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerHour(600).Smooth(100))
	lower := ratelimit.MustPlan("lower", ratelimit.Penalty{}, ratelimit.PerHour(600).Smooth(40))
	type step func(t *testing.T, l *Limiter, subject string)
	use := func(units int64, plan *ratelimit.Plan) step {
		return func(t *testing.T, l *Limiter, subject string) { takeUnits(t, l, subject, plan, units) }
	}
	refunded := func(t *testing.T, l *Limiter, subject string) {
		d := take(t, l, subject, largePlan)
		must(t, l.Adjust(ctx, subject, &d, 0, ""))
	}
	elsewhere := func(units int64, plan *ratelimit.Plan) step {
		return func(t *testing.T, l *Limiter, subject string) {
			d := engine.Uncounted(plan, 0, noon)
			must(t, l.Adjust(ctx, subject, &d, units, ""))
		}
	}
	for name, c := range map[string]struct {
		plan  *ratelimit.Plan
		left  int64 // that plan has after the flood
		steps []step
	}{
		"used up":                           {keptPlan, 0, []step{use(10, keptPlan)}},
		"half":                              {keptPlan, 5, []step{use(5, keptPlan)}},
		"half of a day":                     {striking, 1, []step{use(2, striking)}},
		"a strike":                          {striking, 0, []step{use(3, striking), use(1, striking)}},
		"a larger plan after it":            {keptPlan, 0, []step{use(10, keptPlan), use(1, largePlan)}},
		"other windows after it":            {keptPlan, 0, []step{use(10, keptPlan), use(1, hourPlan)}},
		"a refund under a larger plan":      {keptPlan, 0, []step{use(10, keptPlan), refunded}},
		"usage from elsewhere":              {keptPlan, 0, []step{use(10, keptPlan), elsewhere(1, largePlan)}},
		"a denial":                          {keptPlan, 0, []step{use(10, keptPlan), use(1, keptPlan)}},
		"a downgrade":                       {keptPlan, 0, []step{use(10, largePlan), use(1, keptPlan)}},
		"usage under a larger plan":         {keptPlan, 0, []step{use(1, keptPlan), use(9, largePlan)}},
		"an adjustment of new windows":      {keptPlan, 0, []step{elsewhere(10, keptPlan)}},
		"an adjustment of a larger plan's":  {keptPlan, 0, []step{use(1, largePlan), elsewhere(10, keptPlan)}},
		"half of a burst":                   {smooth, 50, []step{use(50, smooth)}},
		"half of a lower burst":             {lower, 19, []step{use(20, smooth), use(1, lower)}},
		"a higher burst after it":           {lower, 19, []step{use(20, lower), elsewhere(1, smooth)}},
		"an adjustment of a full bucket":    {lower, 19, []step{elsewhere(21, lower)}},
		"an adjustment of another's bucket": {lower, 19, []step{use(1, smooth), elsewhere(20, lower)}},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restart: ", restarts), func(t *testing.T) {
				clock := ratelimittest.NewClock(noon)
				l := newLimiter(t, Options{MaxSubjects: 500, Now: clock.Now})
				for i := range 100 {
					for _, do := range c.steps {
						do(t, l, fmt.Sprint(i))
					}
				}
				if restarts {
					l = restart(t, l, records(l))
				}
				if refused := flood(t, l, 5000); refused > 0 {
					t.Errorf("%d new subjects were refused, though 300 places can be had", refused)
				}
				for i := range 100 {
					if d, err := l.Peek(ctx, fmt.Sprint(i), c.plan); err != nil || d.Remaining() != c.left {
						t.Fatalf("%d is left to subject %d after the flood, and error %v; want %d", d.Remaining(), i, err, c.left)
					}
				}
			})
		}
	}
}

// No subject is kept for longer than there is a reason to.
func TestNotKeptFor(t *testing.T) {
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	for name, end := range map[string]func(t *testing.T, l *Limiter, clock *ratelimittest.Clock, all []ratelimit.Decision){
		"a minute that is over": func(_ *testing.T, _ *Limiter, clock *ratelimittest.Clock, _ []ratelimit.Decision) {
			clock.Set(noon.Add(time.Minute))
		},
		"what was refunded": func(t *testing.T, l *Limiter, _ *ratelimittest.Clock, all []ratelimit.Decision) {
			for i := range all {
				must(t, l.Adjust(ctx, fmt.Sprint(i), &all[i], 0, ""))
			}
		},
		"a window of a plan that is not known": func(t *testing.T, l *Limiter, clock *ratelimittest.Clock, all []ratelimit.Decision) {
			for i := range all {
				all[i].Receipt.Others[0] = fixedwindow.Window{Length: 3600, End: uint32(noon.Truncate(time.Hour).Add(time.Hour).Unix())}
				must(t, l.Adjust(ctx, fmt.Sprint(i), &all[i], 3, ""))
			}
			clock.Set(noon.Add(time.Minute))
		},
	} {
		for _, restarts := range []bool{false, true} {
			t.Run(fmt.Sprint(name, ", restart: ", restarts), func(t *testing.T) {
				clock := ratelimittest.NewClock(noon)
				l := newLimiter(t, Options{MaxSubjects: 200, Now: clock.Now})
				var all []ratelimit.Decision
				for i := range 200 {
					d, err := l.Take(ctx, fmt.Sprint(i), minute, 6)
					must(t, err)
					d.Cost = 2 // of which four are kept, which is less than half
					all = append(all, d)
				}
				if refused := flood(t, l, 10); refused != 10 {
					t.Fatalf("%d of 10 new subjects were refused while all others had used half of a minute", refused)
				}
				if restarts {
					l = restart(t, l, records(l))
				}
				end(t, l, clock, all)
				if refused := flood(t, l, 300); refused > 0 {
					t.Errorf("%d of 300 new subjects were refused", refused)
				}
			})
		}
	}
}

// restart returns an engine that has loaded records of the given one.
func restart(t *testing.T, l *Limiter, records []Record) *Limiter {
	t.Helper()
	again := newLimiter(t, Options{MaxSubjects: int(l.capacity.bound), Now: l.clock.read, Secret: l.Secret()})
	must(t, again.Load(records))
	return again
}
