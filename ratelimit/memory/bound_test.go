package memory

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

func TestFullOfThoseWhoCount(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{MaxSubjects: 100, Now: clock.Now})
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
		t.Errorf("a subject that is kept: %v, want limited", d.Outcome)
	}
	clock.Set(noon.Add(time.Minute))
	take(t, l, "one more", plan) // the minute is over, and with it the reason to hold anybody
}

// What must be known of units that were given back is bounded: beyond that they stay charged.
func TestFullOfReturns(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(10))
	s := &l.segments[l.key.sum("a")>>l.shift]
	for i := range uint64(subjectsInSegment) {
		s.returns[bucketKey{i, fixedwindow.KindOf(-60)}] = []gcra.Return{{At: gcra.At(noon.UnixNano())}}
	}
	for _, c := range []struct {
		after time.Duration
		left  int64
	}{{0, 0}, {3*time.Minute - 20*time.Second, 0}, {3 * time.Minute, 10}} {
		clock.Set(noon.Add(c.after))
		d := takeUnits(t, l, "a", plan, 10)
		must(t, l.Adjust(ctx, "a", &d, 0, ""))
		if d, err := l.Peek(ctx, "a", plan); err != nil || d.Remaining() != c.left || len(s.returns) > subjectsInSegment {
			t.Errorf("after %v: %d are left, with error %v and %d returns, want %d", c.after, d.Remaining(), err, len(s.returns), c.left)
		}
	}
}

// A charge of nothing, or of windows that are over, takes no place from others,
// and needs none.
func TestChargeOfNothingTakesNoPlace(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{MaxSubjects: 1, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(4), ratelimit.PerHour(4))
	for used := int64(1); used <= 2; used++ { // of the second unit on, the subject is kept
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
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10))
	for i := range 30_000 {
		take(t, l, fmt.Sprint("first ", i), plan)
	}
	clock.Set(noon.Add(5 * time.Minute))
	for i := range 15_000 {
		take(t, l, fmt.Sprint("second ", i), plan)
	}
	if kept := l.Stats().Subjects; kept > 20_000 {
		t.Errorf("%d subjects are kept, though 30000 have been idle for long and 15000 are in use", kept)
	}
}

func TestNewRefuses(t *testing.T) {
	for _, opts := range []Options{{MaxSubjects: -1}, {MaxSubjects: 1<<28 + 1}, {Secret: []byte("short")}, {Secret: make([]byte, 32)}} {
		if l, err := New(opts); err == nil || l != nil {
			t.Errorf("%+v: got %v, %v, want an error", opts, l, err)
		}
	}
	take(t, newLimiter(t, Options{MaxSubjects: 1}), "a", ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1)))
}

func TestNothingIsAllocated(t *testing.T) {
	l := newLimiter(t, Options{})
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
	must(t, l.Ban(ctx, "banned", time.Hour, ""))
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

// A new subject takes the place of the one that has used least.
func TestThoseThatUsedLeastGiveWay(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	const places = 10
	l := newLimiter(t, Options{MaxSubjects: places, Now: clock.Now})
	use := func(subject string, units int64) {
		t.Helper()
		_, err := l.Take(ctx, subject, largePlan, units)
		must(t, err)
	}
	name := func(i int64) string { return string(rune('a' + i)) }
	for i := range int64(places) {
		use(name(i), 10*(i*7%places+1)) // 10 to 100 units, in no order
	}
	for gone := range int64(places) {
		use("new "+name(gone), 200)
		for i := range int64(places) {
			units := 10 * (i*7%places + 1)
			d, err := l.Peek(ctx, name(i), largePlan)
			must(t, err)
			want := 1000 - units
			if units <= 10*(gone+1) {
				want = 1000 // it gave way
			}
			if d.States[0].Remaining != want {
				t.Errorf("after %d new subjects the one that used %d has %d left, want %d", gone+1, units, d.States[0].Remaining, want)
			}
		}
	}
	if s := l.Stats(); s.Subjects != places || s.Evicted != places || s.Refused != 0 {
		t.Errorf("%+v, want %d subjects and as many evicted", s, places)
	}
}

// What is compared is the share of a quota, which windows and buckets of any plan have.
func TestTheSmallestShareGivesWay(t *testing.T) {
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan {
		return ratelimit.MustPlan("p", ratelimit.Penalty{}, quotas...)
	}
	buckets := plan(ratelimit.PerMinute(60).Smooth(60), ratelimit.PerDay(1000).Smooth(1000))
	mixed := plan(ratelimit.PerDay(1000).Smooth(1000), ratelimit.PerMinute(60))
	small, large, soft := plan(ratelimit.PerHour(10)), plan(ratelimit.PerHour(1000)), plan(ratelimit.PerHour(1000).Soft())
	type use struct {
		plan  *ratelimit.Plan
		units int64
		then  time.Duration
	}
	for name, test := range map[string]struct {
		goes, stays use
	}{
		"a bucket that fills in a day":      {use{buckets, 1, 0}, use{buckets, 20, time.Minute}},
		"a bucket that is full again":       {use{buckets, 25, time.Minute}, use{buckets, 20, 0}},
		"a bucket beside a window":          {use{large, 15, 0}, use{mixed, 20, time.Minute}},
		"a window that is over":             {use{mixed, 20, time.Minute}, use{mixed, 5, 0}},
		"units of a large and a small plan": {use{large, 300, 0}, use{small, 4, 0}},
		"units of a soft plan":              {use{soft, 100, 0}, use{large, 200, 0}},
		"units beside those of a soft plan": {use{large, 100, 0}, use{soft, 200, 0}},
		"units beyond the limit of one":     {use{large, 450, 0}, use{soft, 2000, 0}},
		"units of a small and a large plan": {use{small, 4, 0}, use{large, 450, 0}},
	} {
		t.Run(name, func(t *testing.T) {
			clock := ratelimittest.NewClock(noonSharp())
			l := newLimiter(t, Options{MaxSubjects: 2, Now: clock.Now})
			uses := map[string]use{"goes": test.goes, "stays": test.stays}
			order := []string{"stays", "goes"}
			if test.goes.then > 0 {
				slices.Reverse(order)
			}
			for _, subject := range order {
				u := uses[subject]
				takeUnits(t, l, subject, u.plan, u.units)
				clock.Set(clock.Now().Add(u.then))
			}
			takeUnits(t, l, "new", large, 499)
			for subject, u := range uses {
				is, err := l.Peek(ctx, subject, u.plan)
				must(t, err)
				fresh, err := l.Peek(ctx, "unknown", u.plan)
				must(t, err)
				if gone := is.States == fresh.States; gone != (subject == "goes") {
					t.Errorf("%s: its usage was replaced: %v", subject, gone)
				}
			}
		})
	}
}

var minutePlan = ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10))

// Evicted counts subjects that were forgotten before their time. A subject whose
// windows are over is not one of them.
func TestEvictedCountsOnlyThoseThatWereStillCounted(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{Now: clock.Now, MaxSubjects: 1})
	take(t, l, "a", minutePlan)
	clock.Set(noon.Add(30 * time.Second)) // the minute ends
	take(t, l, "b", minutePlan)
	if s := l.Stats(); s.Subjects != 1 || s.Evicted != 0 || s.Refused != 0 {
		t.Errorf("b came when the minute of a was over: %+v, want 1 subject, and none evicted or refused", s)
	}
	take(t, l, "c", minutePlan)
	if s := l.Stats(); s.Subjects != 1 || s.Evicted != 1 || s.Refused != 0 {
		t.Errorf("c came in the minute of b: %+v, want 1 subject and 1 evicted", s)
	}
}

// Save does not report that a subject has expired, also if others have its place.
func TestSaveDoesNotReportExpiredSubjects(t *testing.T) {
	for _, places := range []int{1, 100} { // taken, or swept
		clock := ratelimittest.NewClock(noon)
		l := newLimiter(t, Options{Now: clock.Now, MaxSubjects: places})
		take(t, l, "a", minutePlan)
		save(t, l, disk{})
		clock.Set(noon.Add(5 * time.Minute))
		for i := range places {
			take(t, l, fmt.Sprint(i), minutePlan)
		}
		err := l.Save(func(records []Record) error {
			if len(records) != places || slices.ContainsFunc(records, func(r Record) bool { return len(r.Data) == 0 }) {
				t.Errorf("saved %+v, want the %d who came later", records, places)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
}

// When there is no place for a strike, the decision stands and is counted as
// refused. A ban for which there is no place is an error. Neither changes the
// account.
func TestNoPlaceForAStrike(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{MaxSubjects: 1, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{
		Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour,
	}, ratelimit.PerMinute(1))
	take(t, l, "a", plan)
	for i := range uint64(5) {
		if d := take(t, l, "a", plan); d.Outcome != ratelimit.Limited || d.Struck {
			t.Errorf("request %d over the limit: %v with Struck %v, want limited without, since no strike can be kept", i, d.Outcome, d.Struck)
		}
		if s := l.Stats(); s.Refused != i+1 {
			t.Errorf("%d strikes found no place, and %d are counted", i+1, s.Refused)
		}
	}
	if err := l.Ban(ctx, "a", time.Hour, ""); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("a ban without a place: %v, want ErrUnavailable", err)
	}
	if bans, err := l.Bans(ctx); err != nil || len(bans) > 0 {
		t.Errorf("bans %v, %v, want none", bans, err)
	}
	if d := take(t, l, "a", plan); d.Outcome != ratelimit.Limited {
		t.Errorf("after a ban that found no place: %v, want limited", d.Outcome)
	}
	clock.Set(noon.Add(30 * time.Second)) // the minute ends
	if d := take(t, l, "a", plan); !d.Allowed() {
		t.Errorf("in the next minute: %v, want allowed", d.Outcome)
	}
}

// At the bound a decision looks at few places, however many subjects are kept and wherever
// they are. A place that can be had is found nearly always, and never taken from a
// subject that is kept.
func TestFewPlacesAreLookedAt(t *testing.T) {
	race.Skip(t)
	for free := range 3 {
		for _, group := range []bool{false, true} {
			t.Run(fmt.Sprint(free, " not kept, group: ", group), func(t *testing.T) { testFewPlaces(t, free, group) })
		}
	}
}

func testFewPlaces(t *testing.T, free int, group bool) {
	clock, random := ratelimittest.NewClock(noonSharp()), rand.New(rand.NewPCG(uint64(free), 1))
	l := newLimiter(t, Options{MaxSubjects: subjectsInSegment, Now: clock.Now, Secret: []byte("a secret that every run shares..")})
	s := &l.segments[0]
	for i := range subjectsInSegment - free {
		takeUnits(t, l, fmt.Sprint(i), minutePlan, 5+random.Int64N(4))
	}
	refused := 0
	for i := range 2000 {
		kept := fmt.Sprint(random.IntN(subjectsInSegment - free))
		charges := []ratelimit.Charge{{Subject: fmt.Sprint("new ", i), Plan: minutePlan, Cost: 1}}
		if group {
			charges = append(charges, ratelimit.Charge{Subject: kept, Plan: minutePlan, Cost: 1})
		}
		switch random.IntN(8) { // what ends and moves a little of what is known
		case 0:
			_, _ = l.Take(ctx, kept, minutePlan, 1)
		case 1:
			_ = l.Ban(ctx, kept, time.Minute, "") // finds no place, or takes one
			_, _ = l.Unban(ctx, kept)
		}
		s.looked = 0
		err := l.TakeAll(ctx, charges, make([]ratelimit.Decision, len(charges)))
		if errors.Is(err, ratelimit.ErrUnavailable) {
			refused++
		} else if err != nil {
			t.Fatal(err)
		}
		if i%20 == 0 && l.wrong() != "" {
			t.Fatalf("call %d: %s", i, l.wrong())
		}
		if s.looked > maxLooked {
			t.Fatalf("call %d looked at %d places, want %d at most", i, s.looked, maxLooked)
		}
	}
	if most := 100; free > 0 && refused > most {
		t.Errorf("%d of 2000 new subjects were refused, want %d at most", refused, most)
	}
	for i := range subjectsInSegment - free {
		if d, err := l.Peek(ctx, fmt.Sprint(i), minutePlan); err != nil || d.Remaining() > 5 {
			t.Fatalf("subject %d, which is kept, was forgotten", i)
		}
	}
}

// Units that a subject was charged before it was replaced are not given back to it.
func TestLeaseOfAReplacedSubject(t *testing.T) {
	clock := ratelimittest.NewClock(noon)
	l := newLimiter(t, Options{MaxSubjects: 50, Now: clock.Now})
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerDay(1000))
	d, err := l.Lease(ctx, "a", plan, 1, engine.Terms{More: 30})
	must(t, err)
	for i := 0; l.Stats().Evicted < 500; i++ {
		takeUnits(t, l, fmt.Sprint("other ", i), plan, 40)
	}
	takeUnits(t, l, "a", plan, 40)
	d.Cost = 30
	if d, err = l.Lease(ctx, "a", plan, 1, engine.Terms{Back: &d}); err != nil || d.Remaining() != 1000-41 {
		t.Errorf("%d are left after 41 units and a share from before (%v), want %d", d.Remaining(), err, 1000-41)
	}
}
