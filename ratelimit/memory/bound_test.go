package memory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

var ctx = context.Background()

var noon = time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)

func newLimiter(t testing.TB, opts memory.Options) *memory.Limiter {
	t.Helper()
	l, err := memory.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func take(t testing.TB, l *memory.Limiter, subject string, plan *ratelimit.Plan) ratelimit.Decision {
	t.Helper()
	d, err := l.Take(ctx, subject, plan, 1)
	if err != nil {
		t.Fatalf("Take(%q): %v", subject, err)
	}
	return d
}

func TestFloodForgetsNobodyWhoCounts(t *testing.T) {
	race.Skip(t)
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{MaxSubjects: 10_000, Now: clock.Now})
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", penalty, ratelimit.PerMinute(10), ratelimit.PerDay(100))
	wide := ratelimit.MustPlan("q", penalty, ratelimit.PerMinute(1000), ratelimit.PerDay(10))

	for i := range 500 {
		for range 5 {
			take(t, l, fmt.Sprint("half of a minute ", i), plan)
			take(t, l, fmt.Sprint("half of a day ", i), wide)
		}
		for range 12 {
			take(t, l, fmt.Sprint("banned ", i), plan)
		}
		for range 11 {
			take(t, l, fmt.Sprint("has a strike ", i), plan)
		}
	}
	for i := range 60_000 {
		take(t, l, fmt.Sprint("fresh ", i), plan)
		if held := l.Stats().Subjects; held > 10_000 {
			t.Fatalf("%d subjects are held, at most 10000 were asked for", held)
		}
	}
	for i := range 500 {
		for name, want := range map[string]int64{"half of a minute ": 4, "half of a day ": 4} {
			p := plan
			if want == 4 && name == "half of a day " {
				p = wide
			}
			if d := take(t, l, fmt.Sprint(name, i), p); d.Remaining() != want {
				t.Fatalf("%s%d has %d left after the flood, want %d", name, i, d.Remaining(), want)
			}
		}
		if d := take(t, l, fmt.Sprint("banned ", i), plan); d.Outcome != ratelimit.Banned {
			t.Fatalf("banned %d is %v after the flood", i, d.Outcome)
		}
		if d := take(t, l, fmt.Sprint("has a strike ", i), plan); d.Outcome != ratelimit.Banned {
			t.Fatalf("the second strike of %d, after the flood: %v, want banned", i, d.Outcome)
		}
	}
	s := l.Stats()
	if s.Evicted < 50_000 || s.Refused != 0 {
		t.Errorf("%d evicted and %d refused, want nearly all of the flood and none", s.Evicted, s.Refused)
	}
}

// What counts is the share of a quota, not how much was used: two of three are
// kept, and twenty of a thousand give way.
func TestFloodOfLargerUsage(t *testing.T) {
	race.Skip(t)
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{MaxSubjects: 1000, Now: clock.Now})
	small := ratelimit.MustPlan("small", ratelimit.Penalty{}, ratelimit.PerHour(3), ratelimit.PerDay(1000))
	large := ratelimit.MustPlan("large", ratelimit.Penalty{}, ratelimit.PerHour(1000), ratelimit.PerDay(10_000))
	for i := range 100 {
		take(t, l, fmt.Sprint("small ", i), small)
		take(t, l, fmt.Sprint("small ", i), small)
	}
	for i := range 20_000 {
		if _, err := l.Take(ctx, fmt.Sprint("large ", i), large, 20); err != nil {
			t.Fatal(err)
		}
	}
	for i := range 100 {
		if d := take(t, l, fmt.Sprint("small ", i), small); d.States[0].Remaining != 0 {
			t.Fatalf("small %d, who had used two of three, has %d left after the third", i, d.States[0].Remaining)
		}
	}
}

func TestFullOfThoseWhoCount(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{MaxSubjects: 100, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	for i := range 100 {
		take(t, l, fmt.Sprint(i), plan)
	}
	if _, err := l.Take(ctx, "one more", plan, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("one more than fits: error %v, want ErrUnavailable", err)
	}
	if s := l.Stats(); s.Subjects != 100 || s.Refused != 1 || s.Evicted != 0 {
		t.Errorf("stats %+v, want 100 subjects, 1 refused, 0 evicted", s)
	}
	if d := take(t, l, "7", plan); d.Outcome != ratelimit.Limited {
		t.Errorf("somebody who is held: %v, want limited", d.Outcome)
	}
	clock.Set(noon.Add(time.Minute))
	take(t, l, "one more", plan) // the minute is over, and with it the reason to hold anybody
}

// A place that is free once a ban is over is free for a new subject, also if the
// ban was a longer one when the table was found to be full.
func TestFullUntilTheShorterBanIsOver(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{MaxSubjects: 2, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(10))
	take(t, l, "a", plan)
	ban(t, l, "a", time.Hour)
	if _, err := l.Take(ctx, "new", plan, 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("one more than fits: error %v, want ErrUnavailable", err)
	}
	ban(t, l, "a", time.Second)
	clock.Set(noon.Add(2 * time.Second))
	take(t, l, "new", plan)
}

// A charge of nothing, or of windows that are over, takes no place from others,
// and needs none.
func TestChargeOfNothingTakesNoPlace(t *testing.T) {
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{MaxSubjects: 1, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(4), ratelimit.PerHour(4))
	for used := int64(1); used <= 2; used++ { // of the second unit on, the subject is held
		take(t, l, "a", plan)
		for _, c := range []struct {
			at    time.Duration
			units int64
		}{{0, 0}, {-24 * time.Hour, 5}} {
			d := engine.Uncounted(plan, 0, noon.Add(c.at))
			if err := l.Adjust(ctx, "b", &d, c.units, ""); err != nil {
				t.Errorf("charge of %v: %v", c, err)
			}
		}
		if d, err := l.Peek(ctx, "a", plan); err != nil || d.Remaining() != 4-used {
			t.Errorf("%d of the other subject is left and error %v, want %d", d.Remaining(), err, 4-used)
		}
	}
}

func TestIdleSubjectsAreDropped(t *testing.T) {
	race.Skip(t)
	clock := enginetest.NewClock(noon)
	l := newLimiter(t, memory.Options{Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10))
	for i := range 30_000 {
		take(t, l, fmt.Sprint("first ", i), plan)
	}
	clock.Set(noon.Add(5 * time.Minute))
	for i := range 15_000 {
		take(t, l, fmt.Sprint("second ", i), plan)
	}
	if held := l.Stats().Subjects; held > 20_000 {
		t.Errorf("%d subjects are held, though 30000 have been idle for long and 15000 are in use", held)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, opts := range []memory.Options{{MaxSubjects: -1}, {MaxSubjects: 1<<28 + 1}, {Secret: []byte("short")}, {Secret: make([]byte, 32)}} {
		if l, err := memory.New(opts); err == nil || l != nil {
			t.Errorf("%+v: got %v, %v, want an error", opts, l, err)
		}
	}
	take(t, newLimiter(t, memory.Options{MaxSubjects: 1}), "a", ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1)))
}

func TestNothingIsAllocated(t *testing.T) {
	l := newLimiter(t, memory.Options{})
	roomy := ratelimit.MustPlan("roomy", ratelimit.DefaultPenalty(), ratelimit.PerMinute(1<<30), ratelimit.PerDay(1<<30))
	lenient := ratelimit.MustPlan("lenient", ratelimit.Penalty{}, ratelimit.PerDay(1))
	tight := ratelimit.MustPlan("tight", ratelimit.DefaultPenalty(), ratelimit.PerDay(1))
	strikes := ratelimit.MustPlan("strikes", ratelimit.Penalty{Strikes: 10_000, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}, ratelimit.PerDay(1))
	names := make([]string, 2000)
	for i := range names {
		names[i] = fmt.Sprint("subject ", i)
		take(t, l, names[i], lenient)
	}
	for range 20 {
		take(t, l, "banned", tight)
		take(t, l, "strikes", strikes)
	}
	if err := l.Ban(ctx, "banned", time.Hour); err != nil {
		t.Fatal(err)
	}
	i := 0
	for name, f := range map[string]func(){
		"allowed": func() { take(t, l, "a", roomy) },
		"limited": func() { take(t, l, names[i%len(names)], lenient); i++ },
		"strikes": func() { take(t, l, "strikes", strikes) },
		"banned":  func() { take(t, l, "banned", tight) },
		"another plan": func() {
			take(t, l, "b", roomy)
			take(t, l, "b", ratelimitPlans[i%2])
			i++
		},
		"peek": func() {
			if _, err := l.Peek(ctx, "a", roomy); err != nil {
				t.Error(err)
			}
		},
	} {
		f()
		if n := testing.AllocsPerRun(1000, f); n != 0 {
			t.Errorf("%s: %v allocations, want none", name, n)
		}
	}
}

var ratelimitPlans = [2]*ratelimit.Plan{
	ratelimit.MustPlan("x", ratelimit.Penalty{}, ratelimit.PerHour(1<<30), ratelimit.PerDay(1<<30)),
	ratelimit.MustPlan("y", ratelimit.Penalty{}, ratelimit.PerMinute(1<<30)),
}

// Slots move when tables grow and accounts are dropped. No charge may be lost or
// doubled meanwhile.
func TestExactWhileTheTableChanges(t *testing.T) {
	const subjects, limit, callers = 3000, 40, 8
	l := newLimiter(t, memory.Options{})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerSecond(fixedwindow.MaxUnits),
		ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength})
	admitted := make([]atomic.Int64, subjects)
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			for i := range subjects * 10 {
				n := (i*7919 + c*131) % subjects
				d, err := l.Take(ctx, fmt.Sprint(n), plan, 1)
				if err != nil {
					t.Error(err)
				}
				if d.Allowed() {
					admitted[n].Add(1)
				}
				if i%16 == 0 { // a subject that is soon dropped
					name := fmt.Sprint("passing ", c, " ", i)
					take(t, l, name, plan)
					if err := l.Reset(ctx, name); err != nil {
						t.Error(err)
					}
				}
			}
		})
	}
	wg.Wait()
	for i := range admitted {
		if got := admitted[i].Load(); got != limit {
			t.Fatalf("subject %d: %d admitted in %d calls, want %d", i, got, callers*limit/4, limit)
		}
	}
}
