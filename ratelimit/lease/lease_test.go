package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// A rig is one process in front of an engine, with a clock that tests move. What runs in the
// background is done at once.
type rig struct {
	*testing.T
	*Limiter
	clock *ratelimittest.Clock
	fake  *counted
}

var (
	ctx   = context.Background()
	start = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	many  = ratelimit.MustPlan("many", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10_000), ratelimit.PerDay(100_000))
	more  = ratelimit.MustPlan("more", ratelimit.Penalty{}, ratelimit.PerMinute(20_000))
	lax   = ratelimit.MustPlan("lax", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	few   = ratelimit.MustPlan("few", ratelimit.DefaultPenalty(), ratelimit.PerMinute(10), ratelimit.PerDay(1000))
)

func newRig(t *testing.T) *rig {
	r := &rig{T: t, clock: ratelimittest.NewClock(start)}
	r.fake = newCounted(r.clock.Now)
	if err := r.fake.Reset(ctx, "ann"); err != nil { // so that her usage has a generation other than 0
		t.Fatal(err)
	}
	r.Limiter = r.process()
	return r
}

// process returns another process in front of the engine.
func (r *rig) process() *Limiter {
	l := newLimiter(r.fake, func() reading { now := r.clock.Now().UnixNano(); return reading{now, now} })
	l.background = func(f func()) { f() }
	return l
}

func (r *rig) take(p *ratelimit.Plan, cost int64) ratelimit.Decision {
	r.Helper()
	d, err := r.Take(ctx, "ann", p, cost)
	if err != nil {
		r.Fatal(err)
	}
	return d
}

// flood makes requests of one unit, a millisecond apart, and returns how many were admitted
// and how often the engine was asked.
func (r *rig) flood(p *ratelimit.Plan, requests int) (admitted, asked int) {
	r.Helper()
	before := r.fake.calls.Load()
	for range requests {
		if d := r.take(p, 1); d.Allowed() {
			admitted++
		}
		r.clock.Advance(time.Millisecond)
	}
	return admitted, int(r.fake.calls.Load() - before)
}

// used returns what the engine has counted in the first quota.
func (r *rig) used(p *ratelimit.Plan) int64 {
	r.Helper()
	d, err := r.fake.Peek(ctx, "ann", p)
	if err != nil {
		r.Fatal(err)
	}
	return p.Quotas()[0].Limit - d.States[0].Remaining
}

func (r *rig) find(p *ratelimit.Plan) *entry {
	h, t := r.table("ann")
	return t.find(h, p)
}

func TestHotSubjectIsDecidedHere(t *testing.T) {
	r := newRig(t)
	if n, asked := r.flood(many, 3000); n != 3000 || asked > 80 {
		t.Errorf("%d of 3000 requests were admitted with %d questions, want all with at most 80", n, asked)
	}
	d := r.take(many, 1)
	if d.Remaining() != 10_000-3001 || d.Cost != 1 || d.StrikesLeft != 10 {
		t.Errorf("%d remaining of a cost of %d, %d strikes left", d.Remaining(), d.Cost, d.StrikesLeft)
	}
	if p, err := r.Peek(ctx, "ann", many); err != nil || p.Remaining() != 10_000-3001 {
		t.Errorf("Peek: %d remaining, %v", p.Remaining(), err)
	}
	s := r.Stats()
	if s.Shares != 1 || s.Held == 0 || r.used(many) != 3001+s.Held || s.Local+s.Asked < 3001 {
		t.Errorf("%+v, and %d used", s, r.used(many))
	}
	r.Close()
	if r.used(many) != 3001 {
		t.Errorf("after Close %d are used, want 3001", r.used(many))
	}
	if d := r.take(many, 1); d.Remaining() != 10_000-3002 || r.Stats().Held != 0 {
		t.Errorf("after Close: %d remaining, %+v", d.Remaining(), r.Stats())
	}
}

func TestColdSubjectIsAskedAbout(t *testing.T) {
	r := newRig(t)
	for i := range 100 {
		if d := r.take(many, 1); d.Remaining() != int64(10_000-1-i) {
			t.Fatalf("request %d: %d remaining", i, d.Remaining())
		}
		if r.clock.Advance(300 * time.Millisecond); r.used(many) != int64(i+1) {
			t.Fatalf("request %d: %d used", i, r.used(many))
		}
		if i == 90 {
			break // before the minute ends
		}
	}
}

func TestDenialsAreRemembered(t *testing.T) {
	r := newRig(t)
	r.flood(few, 10)
	for _, test := range []struct {
		plan     *ratelimit.Plan
		requests int
		asked    int
	}{
		{lax, 10_000, 102},
	} {
		if n, asked := r.flood(test.plan, test.requests); n != 0 || asked > test.asked {
			t.Errorf("%d of %d admitted with %d questions, want none with at most %d", n, test.requests, asked, test.asked)
		}
	}
	d := r.take(lax, 1)
	if d.Outcome != ratelimit.Limited || d.RetryAfter != start.Add(time.Minute).Sub(r.clock.Now()) || d.StrikesLeft != -1 {
		t.Errorf("got %v for %v, %d strikes left", d.Outcome, d.RetryAfter, d.StrikesLeft)
	}
	r.clock.Advance(100 * time.Millisecond)
	r.fake.before = func(context.Context) { // the engine takes long: others ask too
		asked := r.fake.calls.Load()
		if r.take(lax, 1); r.fake.calls.Load() != asked {
			t.Error("what was refused just now is asked about again")
		}
		r.clock.Advance(200 * time.Millisecond)
		if r.take(lax, 1); r.fake.calls.Load() == asked {
			t.Error("a denial is remembered for 200 ms")
		}
	}
	r.take(lax, 1)
	r.clock.Set(start.Add(time.Minute))
	for _, cost := range []int64{8, 8, 1} {
		r.take(lax, cost)
	}
	if r.used(lax) != 9 {
		t.Errorf("%d are used, want that the small request is admitted after the large one was not", r.used(lax))
	}
}

// A flood is banned after as many strikes as without shares, and then asked about once a
// second.
func TestStrikesAreReported(t *testing.T) {
	r := newRig(t)
	r.flood(few, 10)
	r.take(few, 1)
	r.clock.Advance(2100 * time.Millisecond) // the grace is over
	strikes := few.Penalty().Strikes
	for i := range strikes + 1 {
		d := r.take(few, 1)
		want, left := ratelimit.Limited, strikes-1-i
		if i == strikes {
			want, left = ratelimit.Banned, 0
		}
		if d.Outcome != want || d.StrikesLeft != left || !d.Struck {
			t.Fatalf("denial %d: got %v, %d strikes left, struck %t, want %v, %d", i, d.Outcome, d.StrikesLeft, d.Struck, want, left)
		}
		r.clock.Advance(time.Millisecond)
	}
	n, asked := r.flood(few, 10_000)
	if n != 0 || asked > 13 {
		t.Errorf("during the ban %d were admitted with %d questions, want none with at most 13", n, asked)
	}
	d := r.take(few, 1)
	if d.BanReason() != "strikes" || d.BanEnds != start.Add(63*time.Second).Unix() || d.Struck || d.Remaining() != 0 {
		t.Errorf("got %v, %q until %d", d.Outcome, d.BanReason(), d.BanEnds)
	}
}

// Strikes that the engine does not know yet are told to it.
func TestStrikesOfSeveralProcessesAddUp(t *testing.T) {
	r := newRig(t)
	r.flood(few, 10)
	r.take(few, 1)
	r.clock.Advance(2100 * time.Millisecond)
	other := r.process()
	for i := range 11 {
		l := []*Limiter{r.Limiter, other}[i%2]
		if _, err := l.Take(ctx, "ann", few, 1); err != nil {
			t.Fatal(err)
		}
	}
	r.clock.Advance(100 * time.Millisecond)
	if d := r.take(few, 1); d.Outcome == ratelimit.Banned {
		t.Fatalf("banned with the strikes of one process")
	}
	if d, err := other.Take(ctx, "ann", few, 1); err != nil || d.Outcome != ratelimit.Banned {
		t.Errorf("got %v, %v, want a ban", d.Outcome, err)
	}
}

// No strike is lost while the engine is asked, or when the subject pauses.
func TestStrikesAreNotLost(t *testing.T) {
	for name, tell := range map[string]func(r *rig){
		"with two requests, the first has no answer": func(r *rig) { // three are lost: told twice is worse
			r.clock.Advance(150 * time.Millisecond)
			r.fake.err = ratelimit.ErrUnavailable
			_, _ = r.Take(ctx, "ann", few, 1)
			r.fake.err = nil
			for range 7 {
				r.take(few, 1)
			}
		},
		"with a request": func(r *rig) {
			r.clock.Advance(150 * time.Millisecond)
			r.fake.before = func(context.Context) {
				for range 3 {
					r.take(few, 1)
				}
			}
			r.take(few, 1)
			r.clock.Advance(150 * time.Millisecond)
		},
		"without one": func(r *rig) {
			r.take(few, 1)
			r.take(few, 1)
			r.take(few, 1)
			r.clock.Advance(2 * time.Second)
			r.sweep(false)
			r.take(few, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.flood(few, 10)
			r.take(few, 1)
			r.clock.Advance(2100 * time.Millisecond)
			for range 4 {
				r.take(few, 1)
			}
			tell(r)
			if d := r.take(few, 1); d.StrikesLeft != 1 {
				t.Errorf("after 9 strikes of 10 %d are left", d.StrikesLeft)
			}
		})
	}
}

func TestCommandsOfThisProcessActAtOnce(t *testing.T) {
	r := newRig(t)
	r.flood(many, 1000)
	if err := r.Ban(ctx, "ann", time.Hour, "spam"); err != nil {
		t.Fatal(err)
	}
	for range 2 { // the second one is remembered
		if d := r.take(many, 1); d.Outcome != ratelimit.Banned || d.BanReason() != "spam" {
			t.Errorf("got %v, %q", d.Outcome, d.BanReason())
		}
	}
	if r.used(many) != 1000 {
		t.Errorf("the share was not given back: %d are used", r.used(many))
	}
	if banned, err := r.Unban(ctx, "ann"); err != nil || !banned {
		t.Errorf("Unban: %t, %v", banned, err)
	}
	if d := r.take(many, 1); !d.Allowed() {
		t.Errorf("after Unban: %v", d.Outcome)
	}
	r.flood(many, 1000)
	if err := r.Reset(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	if d := r.take(many, 1); d.Remaining() != 9999 {
		t.Errorf("after Reset %d remain", d.Remaining())
	}
}

// Commands of other processes act within a second.
func TestCommandsElsewhere(t *testing.T) {
	r := newRig(t)
	r.flood(many, 3000)
	if err := r.fake.Ban(ctx, "ann", time.Hour, ""); err != nil {
		t.Fatal(err)
	}
	if n, _ := r.flood(many, 2000); n > 1000 || r.used(many) != 3000+int64(n) {
		t.Errorf("%d requests were admitted, the first a second before the last, and %d are used, want at most 1000 more", n, r.used(many))
	}
	if _, err := r.fake.Unban(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	if n, _ := r.flood(many, 2000); n < 1000 {
		t.Errorf("%d of 2000 requests were admitted, want all after a second", n)
	}
	r.clock.Advance(time.Second)
	if err := r.fake.Ban(ctx, "ann", time.Hour, ""); err != nil {
		t.Fatal(err)
	}
	banned := func(what string) {
		if d := r.take(many, 3); d.Outcome != ratelimit.Banned || d.Cost != 3 || d.RetryAfter != time.Hour {
			t.Errorf("%s is %v of %d for %v", what, d.Outcome, d.Cost, d.RetryAfter)
		}
	}
	r.fake.before = func(context.Context) { banned("a request that comes while it is asked") }
	banned("a request after a second")
}

func TestSharesAreGivenBack(t *testing.T) {
	for name, test := range map[string]struct {
		after func(r *rig)
		used  int64 // of the minute, beside what was used before, and of the day
	}{
		"idle":         {func(r *rig) { r.clock.Advance(time.Second); r.sweep(false) }, 0},
		"not idle yet": {func(r *rig) { r.clock.Advance(900 * time.Millisecond); r.sweep(false) }, -1},
		"another plan": {func(r *rig) { r.take(more, 1) }, 1},
		"a plan that is smooth": {func(r *rig) {
			r.take(ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(60)), 1)
		}, 1},
		"further charges": {func(r *rig) {
			all := []ratelimit.Charge{{Subject: "ann", Plan: many, Cost: 1}, {Subject: "all", Plan: many, Cost: 1}}
			if err := r.TakeAll(ctx, all, make([]ratelimit.Decision, 2)); err != nil {
				r.Fatal(err)
			}
		}, 1},
		"a plan for which there is no room": {func(r *rig) {
			_, full := r.table("ann")
			p := many // which stays in use
			for i := 0; slices.Contains(full.plans[:], nil); i++ {
				if _, t := r.table(fmt.Sprint(i)); t == full {
					_, _ = r.fake.Take(ctx, fmt.Sprint(i), p, p.Quotas()[0].Limit) // so that there is no share
					_, _ = r.Take(ctx, fmt.Sprint(i), p, 2*minShare)
					p = ratelimit.MustPlan("made", ratelimit.Penalty{}, ratelimit.PerMinute(100))
				}
			}
			r.take(more, 1)
		}, 1},
		"a cost above it": {func(r *rig) { r.take(many, 6000) }, -1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.flood(many, 2000)
			held := r.Stats().Held
			test.after(r)
			if s := r.Stats(); test.used >= 0 && (r.used(many) != 2000+test.used || s.Held != 0 || s.Returned != uint64(held)) {
				t.Errorf("%d are used, %+v, want %d and %d given back", r.used(many), s, 2000+test.used, held)
			} else if test.used < 0 && s.Held == 0 {
				t.Errorf("%+v, want a share", s)
			}
		})
	}
}

// A share has what the last two seconds used, and not more when it is taken often.
func TestShareFollowsTheTraffic(t *testing.T) {
	r := newRig(t)
	hour := ratelimit.MustPlan("hour", ratelimit.DefaultPenalty(), ratelimit.PerHour(1_000_000))
	for _, test := range []struct{ requests, each, most int }{{3000, 10, 200}, {10, 1000, 2 * minShare}} {
		for range test.requests {
			r.take(hour, 1)
			r.clock.Advance(time.Duration(test.each) * time.Millisecond)
		}
		if held := r.Stats().Held; held > int64(test.most) {
			t.Errorf("after requests each %d ms %d units are held, want at most %d", test.each, held, test.most)
		}
	}
}

// A subject with units in the share is not refused when the engine has no more, however slow
// its requests are.
func TestShareIsUsedUp(t *testing.T) {
	r := newRig(t)
	p := ratelimit.MustPlan("hour", ratelimit.DefaultPenalty(), ratelimit.PerHour(1000))
	r.flood(p, 100)
	if _, err := r.fake.Take(ctx, "ann", p, 1000-r.used(p)); err != nil {
		t.Fatal(err)
	}
	held := r.Stats().Held
	if d, err := r.Peek(ctx, "ann", p); err != nil || !d.Allowed() || d.Remaining() != held {
		t.Errorf("Peek: %v, %d remain, %v, want %d", d.Outcome, d.Remaining(), err, held)
	}
	for i := range held {
		if d := r.take(p, 1); !d.Allowed() {
			t.Fatalf("request %d of %d is %v", i, held, d.Outcome)
		}
		r.clock.Advance(1100 * time.Millisecond)
	}
	for range 3 {
		if d := r.take(p, 1); held == 0 || d.Allowed() {
			t.Errorf("after the last of %d units: %v", held, d.Outcome)
		}
	}
	if own := r.find(p).own; own < 3 {
		t.Errorf("of three requests at once %d are known as traffic", own)
	}
}

// A share of before a Reset elsewhere is not spent after the next question, and Remaining is
// never more than the limit.
func TestResetElsewhere(t *testing.T) {
	r := newRig(t)
	r.flood(many, 2000)
	if err := r.fake.Reset(ctx, "ann"); err != nil {
		t.Fatal(err)
	}
	if d, err := r.Peek(ctx, "ann", many); err != nil || d.Remaining() != 10_000 {
		t.Errorf("Peek: %d remain, %v", d.Remaining(), err)
	}
	r.clock.Advance(time.Second)
	for i := range 5 {
		if d := r.take(many, 1); d.Remaining() != int64(9999-i) {
			t.Errorf("after request %d %d remain", i, d.Remaining())
		}
	}
	if r.Close(); r.used(many) != 5 {
		t.Errorf("%d are used, want 5", r.used(many))
	}
}

// Peek does not show units of a window that has ended.
func TestPeekWithAnEndedShare(t *testing.T) {
	r := newRig(t)
	p := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1000), ratelimit.PerDay(100_000))
	r.flood(p, 200)
	r.clock.Set(start.Add(time.Minute))
	if _, err := r.fake.Take(ctx, "ann", p, 1000); err != nil {
		t.Fatal(err)
	}
	if d, err := r.Peek(ctx, "ann", p); err != nil || d.Outcome != ratelimit.Limited || d.RetryAfter != time.Minute || r.Stats().Held == 0 {
		t.Errorf("got %v for %v, %v, %+v", d.Outcome, d.RetryAfter, err, r.Stats())
	}
}

// Whatever happens while the engine is asked about a share, no unit of it stays charged; a share
// that the request has no use for is lost if there is no answer.
func TestWhileTheEngineIsAsked(t *testing.T) {
	const held = 69 // of the flood
	for name, test := range map[string]struct {
		cost   int64
		before func(r *rig, ctx context.Context)
		used   int64
	}{
		"Close":        {60, func(r *rig, _ context.Context) { r.Close() }, 2060},
		"Reset":        {60, func(r *rig, _ context.Context) { _ = r.Reset(ctx, "ann") }, 0},
		"another plan": {60, func(r *rig, _ context.Context) { r.take(more, 1) }, 2061},
		"its caller goes away": {held + 1, func(r *rig, given context.Context) {
			if given.Err() != nil {
				r.Error("the engine would not answer")
			}
		}, 2000 + held + 1},
		"the engine panics": {held + 1, func(r *rig, _ context.Context) { panic("the engine") }, 2000 + held},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if r.flood(many, 2000); r.Stats().Held != held {
				t.Fatalf("%+v, want that %d are held", r.Stats(), held)
			}
			r.fake.before = func(ctx context.Context) { test.before(r, ctx) }
			ctx, cancel := context.WithCancel(ctx)
			cancel()
			func() {
				defer func() { _ = recover() }()
				if d, err := r.Take(ctx, "ann", many, test.cost); err != nil || !d.Allowed() {
					t.Errorf("got %v, %v", d.Outcome, err)
				}
			}()
			if e := r.find(many); e != nil && e.asking > 0 {
				t.Error("nothing more will be asked")
			}
			if n := r.Stats().Returned; name == "its caller goes away" && n != held {
				t.Errorf("%d were given back, want %d", n, held)
			}
			if r.Close(); r.used(many) != test.used {
				t.Errorf("%d are used, want %d", r.used(many), test.used)
			}
		})
	}
}

// A request that began before Close, and goes on after it, takes no share.
func TestCloseBeforeARequestHasTheLock(t *testing.T) {
	r := newRig(t)
	r.take(many, 50)
	read := r.read
	r.read = func() reading {
		r.read = read
		r.Close()
		return read()
	}
	if r.take(many, 50); r.used(many) != 100 || r.Stats().Held > 0 {
		t.Errorf("%d are used, want 100, %+v", r.used(many), r.Stats())
	}
}

// An answer about the next minute has no use for the share of this one.
func TestMinuteEndsWhileTheEngineIsAsked(t *testing.T) {
	r := newRig(t)
	r.flood(many, 2000)
	r.fake.before = func(context.Context) { r.clock.Set(start.Add(time.Minute)) }
	held := r.Stats().Held
	r.take(many, held+1)
	if used := r.used(many) - r.Stats().Held; held == 0 || used != held+1 {
		t.Errorf("%d units are used, want %d", used, held+1)
	}
}

// While another process opens windows of another plan, to which the share is not charged, it
// is not used, and comes back.
func TestOtherPlanElsewhere(t *testing.T) {
	r := newRig(t)
	hour := ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerHour(10_000))
	r.flood(many, 2000)
	if _, err := r.fake.Take(ctx, "ann", hour, 1); err != nil {
		t.Fatal(err)
	}
	n := 0
	for asked := 0; asked == 0; n++ {
		_, asked = r.flood(many, 1)
	}
	if r.Stats().Held != 0 {
		t.Errorf("after the next question: %+v", r.Stats())
	}
	before := r.used(hour)
	if r.take(many, 10); r.Stats().Held != 0 || r.used(hour) != before+10 || r.used(many) != int64(2011+n) {
		t.Errorf("%+v, %d used of the hour and %d of the minute", r.Stats(), r.used(hour), r.used(many))
	}
	r.take(many, 9000)
	r.clock.Advance(time.Second)
	if r.take(many, 10); r.Stats().Held != 0 {
		t.Errorf("after a denial: %+v", r.Stats())
	}
}

// A share ends with its window also if the clock of the process is slow, or stood still while
// the machine was suspended.
func TestShareEndsInTime(t *testing.T) {
	for name, read := range map[string]func(passed int64) reading{
		"both clocks are slow":            func(n int64) reading { return reading{n * 10 / 11, n * 10 / 11} },
		"the monotonic clock stood still": func(n int64) reading { return reading{min(n, 59.5e9), n} },
		"the wall clock was set back":     func(n int64) reading { return reading{n, min(n, 59.5e9)} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Limiter = newLimiter(r.fake, func() reading { return read(int64(r.clock.Now().Sub(start))) })
			r.background = func(f func()) { f() }
			r.take(many, 100)
			r.clock.Set(start.Add(59500 * time.Millisecond))
			r.take(many, 100)
			if r.take(many, 100); r.Stats().Held == 0 {
				t.Fatalf("%+v, want a share", r.Stats())
			}
			r.clock.Set(start.Add(time.Minute))
			if d := r.take(many, 1); d.Reset() != start.Add(2*time.Minute).Unix() {
				t.Errorf("a request of the next minute is decided with %+v", d.States[0])
			}
		})
	}
}

// A share that is not used before its window ends is given back to the day.
func TestShareOfAnEndedWindow(t *testing.T) {
	r := newRig(t)
	r.clock.Set(start.Add(55 * time.Second))
	r.flood(many, 2000)
	held := r.Stats().Held
	r.clock.Set(start.Add(59*time.Second + 999*time.Millisecond))
	r.take(many, 1)
	r.clock.Set(start.Add(61 * time.Second))
	r.take(many, 1)
	expired := r.Stats().Expired
	r.clock.Set(start.Add(119*time.Second + 500*time.Millisecond))
	r.take(many, 100)
	r.clock.Set(start.Add(120 * time.Second))
	if r.sweep(false); r.Stats().Held > 0 || r.Stats().Expired == expired {
		t.Errorf("a share is not given back when the minute has ended: %+v", r.Stats())
	}
	day, err := r.fake.Peek(ctx, "ann", many)
	if err != nil {
		t.Fatal(err)
	}
	if s := r.Stats(); held == 0 || s.Expired == 0 || day.States[1].Remaining != 100_000-2102-s.Held {
		t.Errorf("%d were held; %+v, and %d of the day remain", held, s, day.States[1].Remaining)
	}
}

// While the engine does not answer, a share serves until its window ends.
func TestEngineThatDoesNotAnswer(t *testing.T) {
	r := newRig(t)
	r.flood(many, 5000)
	held := int(r.Stats().Held)
	r.fake.err = fmt.Errorf("%w: refused", ratelimit.ErrUnavailable)
	r.clock.Advance(time.Second) // the next request asks, and does not only renew
	n, failed, before := 0, 0, r.fake.calls.Load()
	for i := range held + 10 {
		d, err := r.Take(ctx, "ann", many, 1)
		if i == 1 {
			if d, err := r.Take(ctx, "ann", many, 4000); err == nil {
				t.Errorf("a cost above the share: %v", d.Outcome)
			}
		}
		switch {
		case err == nil && d.Allowed():
			n++
		case errors.Is(err, ratelimit.ErrUnavailable):
			failed++
		default:
			t.Fatal(d, err)
		}
		r.clock.Advance(time.Millisecond)
	}
	if asked := int(r.fake.calls.Load() - before); asked > held/100+20 {
		t.Errorf("%d questions, want one each 100 ms and 10 of requests", asked)
	}
	if n != held || failed != 10 {
		t.Errorf("%d were admitted and %d failed, want %d and 10", n, failed, held)
	}
	r.fake.err = nil
	if d := r.take(many, 1); !d.Allowed() {
		t.Errorf("when it answers again: %v", d.Outcome)
	}
}

// check returns what is wrong with a table.
func (t *table) check() string {
	uses := map[uint16]int32{}
	for i, e := range t.entries {
		uses[e.plan]++
		switch {
		case int(t.places[e.hash]) != i || t.plans[e.plan] == nil:
			return fmt.Sprintf("the entry %d is at place %d, and has the plan %v", i, t.places[e.hash], t.plans[e.plan])
		case t.names[e.hash] == "":
			return "an entry has no name"
		}
	}
	for i, p := range t.plans {
		if n := uses[uint16(i)]; n != t.uses[i] || (n > 0) != (p != nil) {
			return fmt.Sprintf("the plan %v is noted with %d uses, and has %d", p, t.uses[i], n)
		}
	}
	if n := len(t.entries); n > maxEntries || n != len(t.places) || len(t.names) > n || len(t.reasons) > n {
		return fmt.Sprintf("there are %d entries, %d places, %d names, %d reasons", n, len(t.places), len(t.names), len(t.reasons))
	}
	return ""
}

// Subjects and plans beyond the bound are decided by the engine. What has a share stays, and what
// was used in the last second.
func TestTablesAreBounded(t *testing.T) {
	r := newRig(t)
	r.flood(many, 2000)
	r.clock.Advance(1100 * time.Millisecond)
	for i := range 2 * tables * maxEntries {
		if _, err := r.Take(ctx, fmt.Sprint("user ", i), many, 2*minShare); err != nil {
			t.Fatal(err)
		}
	}
	for range 2 * maxPlans {
		p := ratelimit.MustPlan("made", ratelimit.Penalty{}, ratelimit.PerMinute(100))
		for i := range 20 {
			if _, err := r.Take(ctx, fmt.Sprint("user ", i), p, 2*minShare); err != nil {
				t.Fatal(err)
			}
		}
	}
	if h, in := r.table("user 3000"); r.find(many).left() == 0 || in.find(h, many) == nil {
		t.Error("a share, or what was used just now, had to make room")
	}
	for i := range r.tables {
		if wrong := r.tables[i].check(); wrong != "" {
			t.Fatal(wrong)
		}
	}
	r.clock.Advance(3 * time.Second)
	r.sweep(false)
	for i := range r.tables {
		if table := &r.tables[i]; len(table.entries)+len(table.places)+len(table.names)+len(table.reasons) > 0 {
			t.Fatal("a table is not empty after two seconds without requests")
		}
	}
}

// However large the requests that are refused, no more is given back than is left.
func TestTrafficIsBounded(t *testing.T) {
	r := newRig(t)
	huge := ratelimit.MustPlan("huge", ratelimit.Penalty{}, ratelimit.PerMinute(1<<53-1))
	for range 5000 {
		r.take(huge, 1)
		r.take(huge, 1<<53-1)
	}
	e := r.find(huge)
	if e.own < 0 || e.own > 1<<53 || e.others < 0 || e.excess() > e.left() {
		t.Errorf("own %d, others %d, an excess of %d of %d", e.own, e.others, e.excess(), e.left())
	}
	r.Close()
	if r.used(huge) != 5000 {
		t.Errorf("%d are used, want 5000", r.used(huge))
	}
}

// A refund, as of a request that ended in a 5xx, costs one question, and leaves the share.
func TestRefundsLeaveTheShare(t *testing.T) {
	r := newRig(t)
	r.flood(many, 1000)
	before := r.fake.calls.Load()
	for range 20 {
		d := r.take(many, 1)
		if err := r.Adjust(ctx, "ann", &d, 0, ""); err != nil {
			t.Fatal(err)
		}
		r.clock.Advance(time.Millisecond)
		r.flood(many, 99)
	}
	if asked := r.fake.calls.Load() - before; asked > 60 {
		t.Errorf("%d questions for 2000 requests with 20 refunds, want at most 60", asked)
	}
	if d := r.take(many, 1); d.Remaining() != 10_000-1000-20*99-1 {
		t.Errorf("%d remain, want %d", d.Remaining(), 10_000-1000-20*99-1)
	}
	b, err := r.Take(ctx, "cat", few, 10)
	if err != nil || !b.Allowed() {
		t.Fatal(b, err)
	}
	if d, err := r.Take(ctx, "cat", few, 1); err != nil || d.Allowed() {
		t.Fatal(d, err)
	}
	if err := r.Adjust(ctx, "cat", &b, 9, ""); err != nil {
		t.Fatal(err)
	}
	if d, err := r.Take(ctx, "cat", few, 1); err != nil || !d.Allowed() {
		t.Errorf("after a refund: got %v (%v), want no remembered denial", d.Outcome, err)
	}
}

func TestNewRefuses(t *testing.T) {
	for name, e := range map[string]ratelimit.Limiter{"nil": nil, "less": struct{ ratelimit.Limiter }{newCounted(nil)}} {
		if _, err := New(e); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func TestNoAllocations(t *testing.T) {
	r := newRig(t)
	r.flood(many, 5000)
	if n := testing.AllocsPerRun(1000, func() { r.take(many, 1) }); n > 0 {
		t.Errorf("an admission allocates %g times", n)
	}
	r.Take(ctx, "bob", few, 10)
	if n := testing.AllocsPerRun(1000, func() { _, _ = r.Take(ctx, "bob", few, 1) }); n > 0 {
		t.Errorf("a denial allocates %g times", n)
	}
}

var _ interface {
	ratelimit.Limiter
	engine.MultiTaker
	engine.Peeker
	engine.Adjuster
	ratelimit.Banner
} = (*Limiter)(nil)

// What the engine has lost is restored, and the share was lost too. Usage that became less
// because another process gave units back is no loss.
func TestRestore(t *testing.T) {
	for _, test := range []struct {
		name   string
		before func(r *rig)
		want   int64
		used   int64 // beside what is held
	}{
		{"nothing is lost", func(r *rig) {}, fixedwindow.MaxUnits, 100},
		{"all is lost", func(r *rig) { _ = r.fake.Reset(ctx, "ann") }, 0, 100},
		{"some was given back, the rest is lost", func(r *rig) { r.fake.givenBack = 10; _ = r.fake.Reset(ctx, "ann") }, 10, 90},
		{"there is no share", func(r *rig) { r.clock.Advance(time.Second); r.sweep(false) }, 0, 100},
	} {
		t.Run(test.name, func(t *testing.T) {
			r := newRig(t)
			r.flood(many, 100)
			known, err := r.Peek(ctx, "ann", many)
			if err != nil || r.Stats().Held == 0 {
				t.Fatal("nothing is held", err)
			}
			test.before(r)
			if got, err := r.Restore(ctx, "ann", &known); got != test.want || err != nil {
				t.Errorf("Restore returned %d, %v, want %d", got, err, test.want)
			}
			held := r.Stats().Held
			if lost := test.want < fixedwindow.MaxUnits; lost != (held == 0) || r.used(many)-held != test.used {
				t.Errorf("%d units are used, and %d held, want %d beside them", r.used(many), held, test.used)
			}
		})
	}
	r := newRig(t)
	known := ratelimit.Decision{Plan: many}
	if got, err := (&Limiter{shared: r.fake.Limiter}).Restore(ctx, "ann", &known); got != fixedwindow.MaxUnits || err != nil {
		t.Errorf("an engine that restores nothing: Restore returned %d, %v", got, err)
	}
	r.flood(many, 100)
	r.fake.err = errLost
	if _, err := r.Restore(ctx, "ann", &known); err == nil {
		t.Error("the engine does not answer: no error")
	}
}

// A share that was taken after all usage was lost stays charged, since what is restored is no
// less for it, and there is no other at once.
func TestNoShareAfterALoss(t *testing.T) {
	r := newRig(t)
	r.flood(many, 100)
	known, err := r.Peek(ctx, "ann", many)
	if err = cmp.Or(err, r.fake.Reset(ctx, "ann")); err != nil {
		t.Fatal(err)
	}
	r.clock.Advance(time.Second) // so that it is asked about
	r.take(many, 1)
	r.take(many, 1)
	if held := r.Stats().Held; held > 0 {
		t.Errorf("%d units are held", held)
	}
	if _, err := r.Restore(ctx, "ann", &known); err != nil || r.used(many) != 100 {
		t.Errorf("%d units are used, %v, want 100", r.used(many), err)
	}
	if r.flood(many, 100); r.Stats().Held == 0 {
		t.Error("there is no share any more")
	}
}
