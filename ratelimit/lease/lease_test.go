package lease

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var _ interface {
	engine.MultiTaker
	engine.Peeker
	engine.Adjuster
	engine.Banner
} = (*Limiter)(nil)

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
	if s.Shares != 1 || s.Held == 0 || r.used(many) != 3001+s.Held || s.Local+s.Asked < 3001 || s.Local > 3001 {
		t.Errorf("%+v, and %d used", s, r.used(many))
	}
	r.Close()
	if r.used(many) != 3001 {
		t.Errorf("after Close %d are used, want 3001", r.used(many))
	}
	if d := r.take(many, 50); d.Remaining() != 10_000-3051 || r.held() != 0 {
		t.Errorf("after Close: %d remaining, %+v", d.Remaining(), r.Stats())
	}
}

func TestColdSubjectIsAskedAbout(t *testing.T) {
	r := newRig(t)
	for i := range int64(90) {
		if d := r.take(many, 1); d.Remaining() != 10_000-1-i || r.used(many) != i+1 || r.Stats().Asked != uint64(i+1) {
			t.Fatalf("request %d: %d remaining, %d used, %+v", i, d.Remaining(), r.used(many), r.Stats())
		}
		r.clock.Advance(300 * time.Millisecond)
	}
	hour := ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerMinute(10_000), ratelimit.PerHour(1000))
	must(t, r.Reset(ctx, "ann"))
	r.elsewhere(hour, 985)
	if _, asked := r.flood(hour, 10); asked != 10 || r.held() != 0 {
		t.Errorf("with 15 units left of the hour, %d questions about 10 requests, and a share of %d; want 10 and none", asked, r.held())
	}
}

// Without a test's background, what is not used comes back within two seconds, and when all is
// closed, many shares at once.
func TestBackground(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		e := newCounted(time.Now)
		l, err := New(e)
		must(t, err)
		take := func(cost int64) {
			for i := range 200 {
				_, err := l.Take(ctx, fmt.Sprint(i), many, cost)
				must(t, err)
			}
		}
		shares := func(want int64, when string) {
			if synctest.Wait(); l.Stats().Shares != want {
				t.Errorf("%s: %+v, want %d shares", when, l.Stats(), want)
			}
		}
		take(100)
		shares(200, "each subject is busy")
		time.Sleep(2 * time.Second)
		shares(0, "after two seconds")
		take(100)
		shares(200, "each subject is busy again")
		e.hook = func(asked call) error {
			time.Sleep(50*time.Millisecond + time.Duration(asked.terms.More)*10*time.Millisecond) // the longest for renewals
			return nil
		}
		take(60) // which renews the share
		closed := time.Now()
		l.Close()
		took, returned := time.Since(closed), l.Stats().Returned
		if time.Sleep(time.Minute / 2); took > 4*time.Second || l.Stats().Returned != returned {
			t.Errorf("Close took %v for 200 shares, and after it %d units were given back", took, l.Stats().Returned-returned)
		}
		for i := range 200 {
			if d, err := e.Peek(ctx, fmt.Sprint(i), many); err != nil || d.Remaining() != 10_000-260 {
				t.Fatalf("of 260 units %d are charged (%v)", 10_000-d.Remaining(), err)
			}
		}
	})
}

func TestSharesAreGivenBack(t *testing.T) {
	for name, test := range map[string]struct {
		after func(r *rig)
		used  int64 // of the minute, beside what was used before, and of the day; -1: there is still a share
	}{
		"idle":            {func(r *rig) { r.clock.Advance(time.Second); r.sweep(false) }, 0},
		"not idle yet":    {func(r *rig) { r.clock.Advance(900 * time.Millisecond); r.sweep(false) }, -1},
		"a cost above it": {func(r *rig) { r.take(many, 6000) }, -1},
		"another plan":    {func(r *rig) { r.take(more, 1) }, 1},
		"a plan that is smooth": {func(r *rig) {
			r.take(ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(60)), 1)
		}, 1},
		"further charges": {func(r *rig) {
			all := []ratelimit.Charge{{Subject: "ann", Plan: many, Cost: 1}, {Subject: "all", Plan: many, Cost: 1}}
			must(r, r.TakeAll(ctx, all, make([]ratelimit.Decision, 2)))
		}, 1},
		"a plan for which there is no room": {func(r *rig) {
			_, full := r.table("ann")
			for i, p := range full.plans {
				full.plans[i], full.uses[i] = cmp.Or(p, lax), full.uses[i]+1
			}
			r.take(more, 1)
		}, 1},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.flood(many, 2000)
			held := r.held()
			test.after(r)
			if s := r.Stats(); test.used >= 0 && (r.used(many) != 2000+test.used || s.Held != 0 || s.Returned != uint64(held)) {
				t.Errorf("%d are used, %+v, want %d and %d given back", r.used(many), s, 2000+test.used, held)
			} else if test.used < 0 && s.Held == 0 {
				t.Errorf("%+v, want a share", s)
			} else if s.Expired > 0 {
				t.Errorf("%+v, and no window has ended", s)
			}
		})
	}
}

// A share has what the last two seconds used, and not more when it is taken often.
func TestShareFollowsTheTraffic(t *testing.T) {
	r := newRig(t)
	hour := ratelimit.MustPlan("hour", ratelimit.DefaultPenalty(), ratelimit.PerHour(1_000_000))
	for _, test := range []struct{ requests, each, most int }{{3000, 10, 200}, {10, 1000, minTraffic}} {
		for range test.requests {
			r.take(hour, 1)
			r.clock.Advance(time.Duration(test.each) * time.Millisecond)
		}
		if r.held() > int64(test.most) {
			t.Errorf("after requests each %d ms %d units are held, want at most %d", test.each, r.held(), test.most)
		}
	}
}

// Of a soft quota beyond its limit a share has at most a hundredth of the limit, and its units show
// as unused.
func TestShareOfASoftQuota(t *testing.T) {
	r := newRig(t)
	soft := ratelimit.MustPlan("soft", ratelimit.Penalty{}, ratelimit.PerHour(1000).Soft())
	for used := range int64(3000) {
		d := r.take(soft, 1)
		if !d.Allowed() || d.Used(0) != used+1 || d.Remaining() != max(999-used, 0) {
			t.Fatalf("request %d is %v, with %d used and %d left", used+1, d.Outcome, d.Used(0), d.Remaining())
		}
		if held := r.held(); held > 10 || held == 0 && used > 100 {
			t.Fatalf("after %d requests %d units are held, want 1 to 10", used+1, held)
		}
		r.clock.Advance(time.Millisecond)
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
	if r.Close(); r.used(huge) != 5000 {
		t.Errorf("%d are used, want 5000", r.used(huge))
	}
}

// A subject with units in the share is not refused when the engine has one more, or no more,
// however fast or slow its requests are. Then it is refused, and its traffic stays known.
func TestShareIsUsedUp(t *testing.T) {
	p := ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerHour(1000))
	for more, pause := range []time.Duration{1100 * time.Millisecond, time.Millisecond} {
		r := newRig(t)
		r.flood(p, 100)
		r.elsewhere(p, 1000-r.used(p)-int64(more))
		left := r.held() + int64(more)
		if d, err := r.Peek(ctx, "ann", p); err != nil || !d.Allowed() || d.Remaining() != left {
			t.Errorf("Peek: %v, %d remain, %v, want %d", d.Outcome, d.Remaining(), err, left)
		}
		for i := range left {
			if d := r.take(p, 1); !d.Allowed() || d.StrikesLeft != -1 {
				t.Fatalf("request %d of %d is %v, with %d strikes left", i, left, d.Outcome, d.StrikesLeft)
			}
			r.clock.Advance(pause)
		}
		if n, _ := r.flood(p, 3); n > 0 || left < 2 || r.find(p).own < 3 {
			t.Errorf("after the last of %d units %d of 3 requests were admitted, and %d are known", left, n, r.find(p).own)
		}
	}
}

// Peek does not show units of a window that has ended.
func TestPeekWithAnEndedShare(t *testing.T) {
	r := newRig(t)
	p := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1000), ratelimit.PerDay(100_000))
	r.flood(p, 200)
	r.clock.Set(start.Add(time.Minute))
	r.elsewhere(p, 1000)
	if d, err := r.Peek(ctx, "ann", p); err != nil || d.Outcome != ratelimit.Limited || d.RetryAfter != time.Minute || r.held() == 0 {
		t.Errorf("got %v for %v, %v, %+v", d.Outcome, d.RetryAfter, err, r.Stats())
	}
}

// Whatever happens while the engine is asked about a share, no unit of it stays charged; a share
// that the request has no use for is lost if there is no answer.
func TestWhileTheEngineIsAsked(t *testing.T) {
	const held = 94 // of the flood
	for name, test := range map[string]struct {
		cost   int64
		before func(r *rig, ctx context.Context)
		used   int64
	}{
		"Close":                  {60, func(r *rig, _ context.Context) { r.Close() }, 2060},
		"Reset":                  {60, func(r *rig, _ context.Context) { must(r, r.Reset(ctx, "ann")) }, 0},
		"another plan":           {60, func(r *rig, _ context.Context) { r.take(more, 1) }, 2061},
		"the next minute begins": {held + 1, func(r *rig, _ context.Context) { r.clock.Set(start.Add(time.Minute)) }, held + 1},
		"the next minute begins before the share is larger": {60, func(r *rig, _ context.Context) { r.clock.Set(start.Add(time.Minute)) }, 0},
		"its caller goes away": {held + 1, func(r *rig, given context.Context) {
			if given.Err() != nil {
				r.Error("the engine would not answer")
			}
		}, 2000 + held + 1},
		"the engine panics": {held + 1, func(r *rig, _ context.Context) { panic("the engine") }, 2000 + held},
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			if r.flood(many, 2000); r.held() != held {
				t.Fatalf("%+v, want that %d are held", r.Stats(), held)
			}
			r.fake.once(func(ctx context.Context) { test.before(r, ctx) })
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
			if r.held() > r.used(many) {
				t.Errorf("%d are held, and %d used", r.held(), r.used(many))
			}
			if r.Close(); r.used(many) != test.used {
				t.Errorf("%d are used, want %d", r.used(many), test.used)
			}
		})
	}
}

// While another process opens windows of another plan, to which the share is not charged, it
// is not used, and comes back.
func TestOtherPlanElsewhere(t *testing.T) {
	r := newRig(t)
	hour := ratelimit.MustPlan("hour", ratelimit.Penalty{}, ratelimit.PerHour(10_000))
	r.flood(many, 2000)
	r.elsewhere(hour, 1)
	r.clock.Advance(time.Second) // so that it is asked about
	if r.take(many, 1); r.held() != 0 {
		t.Errorf("after the next question: %+v", r.Stats())
	}
	before := r.used(hour)
	if r.take(many, 10); r.held() != 0 || r.used(hour) != before+10 || r.used(many) != 2012 {
		t.Errorf("%+v, %d used of the hour and %d of the minute", r.Stats(), r.used(hour), r.used(many))
	}
	r.take(many, 9000)
	r.clock.Advance(time.Second)
	if r.take(many, 10); r.held() != 0 {
		t.Errorf("after a denial: %+v", r.Stats())
	}
}

// A share ends with its window also if the clock of the process is slow, or stood still while
// the machine was suspended.
func TestShareEndsInTime(t *testing.T) {
	for name, read := range map[string]func(passed time.Duration) reading{
		"both clocks are slow":            func(n time.Duration) reading { return reading{n * 10 / 11, n * 10 / 11} },
		"the monotonic clock stood still": func(n time.Duration) reading { return reading{min(n, 59500*time.Millisecond), n} },
		"the wall clock was set back":     func(n time.Duration) reading { return reading{n, min(n, 59500*time.Millisecond)} },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.Limiter = inFront(r.fake, func() reading { return read(r.clock.Now().Sub(start)) })
			p := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.Quota{Limit: 10_000, Window: 45 * time.Second}, ratelimit.PerMinute(10_000))
			r.take(p, 100)
			r.clock.Set(start.Add(59500 * time.Millisecond))
			r.take(p, 100)
			if r.take(p, 100); r.held() == 0 {
				t.Fatalf("%+v, want a share", r.Stats())
			}
			r.clock.Set(start.Add(time.Minute))
			if d := r.take(p, 1); d.States[1].Reset != start.Add(2*time.Minute).Unix() {
				t.Errorf("a request of the next minute is decided with %+v", d.States)
			}
		})
	}
}

// The time until a share ends counts from the question, however late the answer comes.
func TestShareOfALateAnswer(t *testing.T) {
	r := newRig(t)
	p := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(10_000))
	r.clock.Set(start.Add(58900 * time.Millisecond))
	r.take(p, 100)
	r.fake.late(func() { r.clock.Advance(700 * time.Millisecond) })
	if r.take(p, 100); r.held() == 0 {
		t.Fatalf("%+v, want a share", r.Stats())
	}
	r.clock.Set(start.Add(time.Minute))
	if d := r.take(p, 1); d.States[0].Reset != start.Add(2*time.Minute).Unix() {
		t.Errorf("a request of the next minute is decided with %+v", d.States[0])
	}
}

// A share that is not used before its window ends is given back to the day.
func TestShareOfAnEndedWindow(t *testing.T) {
	r := newRig(t)
	r.clock.Set(start.Add(55 * time.Second))
	r.flood(many, 2000)
	held := r.held()
	r.clock.Set(start.Add(59*time.Second + 999*time.Millisecond))
	r.take(many, 1)
	r.clock.Set(start.Add(61 * time.Second))
	r.take(many, 1)
	expired := r.Stats().Expired
	r.clock.Set(start.Add(119*time.Second + 500*time.Millisecond))
	r.take(many, 100)
	r.clock.Set(start.Add(120 * time.Second))
	if r.sweep(false); r.held() > 0 || r.Stats().Expired == expired {
		t.Errorf("a share is not given back when the minute has ended: %+v", r.Stats())
	}
	day, err := r.fake.Peek(ctx, "ann", many)
	must(t, err)
	if held == 0 || expired == 0 || day.States[1].Remaining != 100_000-2102 {
		t.Errorf("%d were held; %+v, and %d of the day remain", held, r.Stats(), day.States[1].Remaining)
	}
}

// While the engine does not answer, a share serves until its window ends.
func TestEngineThatDoesNotAnswer(t *testing.T) {
	r := newRig(t)
	r.flood(many, 5000)
	held := int(r.held())
	r.fake.hook = fails
	r.clock.Advance(time.Second) // the next request asks, and does not only renew
	n, before := 0, r.fake.calls.Load()
	for i := range held + 10 {
		d, err := r.Take(ctx, "ann", many, 1)
		if err == nil && d.Allowed() {
			n++
		} else if !errors.Is(err, ratelimit.ErrUnavailable) {
			t.Fatal(d, err)
		}
		if i == 0 {
			if d, err := r.Take(ctx, "ann", many, 4000); err == nil {
				t.Errorf("a cost above the share: %v", d.Outcome)
			}
		}
		if r.clock.Advance(time.Millisecond); i < 12 { // less traffic: what would be given back is lost
			r.clock.Advance(time.Second)
		}
	}
	if asked := int(r.fake.calls.Load() - before); n != held || asked > held/100+32 {
		t.Errorf("%d were admitted with %d questions, want %d with one each 100 ms and 22 of requests", n, asked, held)
	}
	r.fake.hook = answers
	if d := r.take(many, 1); !d.Allowed() {
		t.Errorf("when it answers again: %v", d.Outcome)
	}
	r.flood(many, 100)
	r.find(many).asking++ // another request asks
	r.fake.hook = func(call) error { r.find(many).asking = 0; return context.Canceled }
	if _, err := r.Take(ctx, "ann", many, 2000); err == nil || r.find(many).failing {
		t.Errorf("the caller of one of two questions goes away: %v; want that the share is not taken for one without an engine", err)
	}
	r.fake.hook = fails
	r.clock.Advance(time.Second)
	r.find(many).asking++ // a renewal, which has no answer yet
	if n, asked := r.flood(many, 50); n != 50 || asked != 1 {
		t.Errorf("while a renewal has no answer %d of 50 requests were admitted, and %d waited for the engine, want 1", n, asked)
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
	r = newRig(t)
	r.take(few, 10)
	if n := testing.AllocsPerRun(1000, func() { r.take(few, 1) }); n > 0 {
		t.Errorf("a denial allocates %g times", n)
	}
}

// check fails the test if something is wrong with the tables, which have so many entries at most.
func (l *Limiter) check(t *testing.T, most int) {
	t.Helper()
	for k := range l.tables {
		in := &l.tables[k]
		uses := [maxPlans]int32{}
		for i, e := range in.entries {
			uses[e.plan]++
			if int(in.places[e.hash]) != i || in.names[e.hash] == "" {
				t.Fatalf("the entry %d is at place %d, and has the name %q", i, in.places[e.hash], in.names[e.hash])
			}
		}
		for i, p := range in.plans {
			if n := uses[i]; n != in.uses[i] || (n > 0) != (p != nil) {
				t.Fatalf("the plan %v is noted with %d uses, and has %d", p, in.uses[i], n)
			}
		}
		if n := len(in.entries); n > most || n != len(in.places) || n != len(in.names) || len(in.reasons) > n {
			t.Fatalf("there are %d entries, %d places, %d names, %d reasons", n, len(in.places), len(in.names), len(in.reasons))
		}
	}
}

// Subjects and plans beyond the bound are decided by the engine. What has a share stays, and what
// was used in the last second; others make room.
func TestTablesAreBounded(t *testing.T) {
	r := newRig(t)
	request := func(i int, p *ratelimit.Plan) {
		_, err := r.Take(ctx, fmt.Sprint("user ", i), p, minTraffic)
		must(t, err)
	}
	small := ratelimit.MustPlan("small", ratelimit.Penalty{}, ratelimit.PerMinute(100))
	r.flood(many, 2000)
	r.clock.Advance(1100 * time.Millisecond)
	for i := range 2 * tables * maxEntries {
		request(i, small)
	}
	for i := range 40 * maxPlans {
		request(i%20, ratelimit.MustPlan("made", ratelimit.Penalty{}, ratelimit.PerMinute(100)))
	}
	if h, in := r.table("user 3000"); r.find(many).left() == 0 || in.find(h, small) == nil {
		t.Error("a share, or what was used just now, had to make room")
	}
	r.clock.Advance(1100 * time.Millisecond)
	r.sweep(false)
	must(t, r.fake.Ban(ctx, "user -1", time.Hour, "")) // its reason is kept
	request(-1, small)
	if h, in := r.table("user -1"); in.find(h, small) == nil {
		t.Error("what was not used for a second made no room")
	}
	r.check(t, maxEntries)
	r.clock.Advance(3 * time.Second)
	r.sweep(false)
	r.check(t, 0)
}
