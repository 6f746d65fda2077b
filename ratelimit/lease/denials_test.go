package lease

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

func TestDenialsAreRemembered(t *testing.T) {
	r := newRig(t)
	two := ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.PerMinute(2))
	if n, asked := r.flood(two, 7); n != 2 || asked != 4 {
		t.Errorf("%d of 7 admitted with %d questions, want 2 with 4: the second denial is remembered, before the subject is busy", n, asked)
	}
	must(t, r.Reset(ctx, "ann"))
	r.flood(lax, 10)
	if n, asked := r.flood(lax, 10_000); n != 0 || asked > 102 {
		t.Errorf("%d of 10,000 admitted with %d questions, want none with at most 102", n, asked)
	}
	r.clock.Advance(100 * time.Millisecond)
	r.tarries()
	r.take(lax, 1)
	d := r.take(lax, 1)
	if d.Outcome != ratelimit.Limited || d.Struck || d.RetryAfter != start.Add(time.Minute).Sub(r.clock.Now()) || d.StrikesLeft != -1 {
		t.Errorf("got %v for %v, %d strikes left", d.Outcome, d.RetryAfter, d.StrikesLeft)
	}
	r.clock.Advance(100 * time.Millisecond)
	r.fake.once(func(context.Context) { // the engine takes long: others ask too
		asked := r.fake.calls.Load()
		if r.take(lax, 1); r.fake.calls.Load() != asked {
			t.Error("what was refused just now is asked about again")
		}
		r.clock.Advance(200 * time.Millisecond)
		if r.take(lax, 1); r.fake.calls.Load() == asked {
			t.Error("a denial is remembered for 200 ms")
		}
	})
	r.take(lax, 1)
	r.clock.Set(start.Add(time.Minute - 10*time.Millisecond))
	r.take(lax, 1)
	r.clock.Set(start.Add(time.Minute))
	for _, cost := range []int64{8, 8, 1} {
		r.take(lax, cost)
	}
	if r.used(lax) != 9 {
		t.Errorf("%d are used, want that the small request is admitted after the large one was not", r.used(lax))
	}
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(1))
	if _, asked := r.flood(smooth, 30); asked != 30 {
		t.Errorf("%d questions about 30 requests under a smooth quota", asked)
	}
}

// exhausted returns a rig whose subject has used up the plan few, and whose grace is over.
func exhausted(t *testing.T) *rig {
	r := newRig(t)
	r.flood(few, 10)
	r.take(few, 1)
	r.clock.Advance(2100 * time.Millisecond)
	return r
}

// A flood is banned after as many strikes as without shares, and then asked about once a
// second.
func TestStrikesAreReported(t *testing.T) {
	r := exhausted(t)
	strikes := few.Penalty().Strikes
	for i := range strikes + 2 { // the last one during the ban
		if i == strikes {
			r.fake.once(func(context.Context) {
				if d := r.take(few, 1); d.Outcome != ratelimit.Limited || d.Struck {
					t.Errorf("while the engine is told of all strikes: got %v, struck %t", d.Outcome, d.Struck)
				}
			})
		}
		d := r.take(few, 1)
		want, left := ratelimit.Limited, strikes-1-i
		if i >= strikes {
			want, left = ratelimit.Banned, 0
		}
		if d.Outcome != want || d.StrikesLeft != left || d.Struck != (i <= strikes) {
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

// Strikes in another process leave no decision with less than 0 strikes left, which would mean that
// the plan never bans.
func TestStrikesLeft(t *testing.T) {
	r := exhausted(t)
	r.take(few, 1)
	r.clock.Advance(150 * time.Millisecond)
	r.fake.once(func(context.Context) {
		for range 6 {
			r.take(few, 1)
			r.elsewhere(few, 1)
		}
	})
	r.take(few, 1)
	r.fake.once(func(context.Context) {
		if d := r.take(few, 1); d.StrikesLeft != 0 {
			t.Errorf("while the engine is told: %d strikes left, want 0", d.StrikesLeft)
		}
	})
	r.take(few, 1)
}

// No strike is lost while the engine is asked, when the subject pauses, or when another process
// has the others.
func TestStrikesAreNotLost(t *testing.T) {
	for name, tell := range map[string]func(r *rig){
		"with two requests, the first has no answer": func(r *rig) { // three are lost: told twice is worse
			r.clock.Advance(150 * time.Millisecond)
			r.fake.hook = fails
			_, _ = r.Take(ctx, "ann", few, 1)
			r.fake.hook = answers
			r.flood(few, 7)
		},
		"with a request": func(r *rig) {
			r.clock.Advance(150 * time.Millisecond)
			r.fake.once(func(context.Context) {
				if d := r.take(few, 1); d.StrikesLeft != 5 {
					r.Errorf("while the engine is told of four strikes, the fifth leaves %d", d.StrikesLeft)
				}
				r.flood(few, 2)
			})
			r.take(few, 1)
			r.clock.Advance(150 * time.Millisecond)
		},
		"with a request, and the subject is forgotten before the answer": func(r *rig) {
			r.clock.Advance(150 * time.Millisecond)
			r.fake.late(func() { r.forget("ann") })
			r.flood(few, 4)
		},
		"of two processes": func(r *rig) {
			other := r.process()
			for i := range 4 {
				r.clock.Advance(time.Duration(i) * 50 * time.Millisecond) // so that the last one asks
				_, err := other.Take(ctx, "ann", few, 1)
				must(r, err)
			}
		},
		"without one": func(r *rig) {
			r.flood(few, 3)
			r.clock.Advance(2 * time.Second)
			r.sweep(false)
			r.take(few, 1)
		},
	} {
		t.Run(name, func(t *testing.T) {
			r := exhausted(t)
			r.flood(few, 4)
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
	must(t, r.Ban(ctx, "ann", time.Hour, "spam"))
	for range 2 { // the second one is remembered
		if d := r.take(many, 1); d.Outcome != ratelimit.Banned || d.BanReason() != "spam" {
			t.Errorf("got %v, %q", d.Outcome, d.BanReason())
		}
	}
	if r.used(many) != 1000 {
		t.Errorf("the share was not given back: %d are used", r.used(many))
	}
	banned, err := r.Unban(ctx, "ann")
	if n, _ := r.flood(many, 1000); err != nil || !banned || n != 1000 {
		t.Errorf("Unban: %t, %v; then %d of 1000 requests are admitted", banned, err, n)
	}
	must(t, r.Reset(ctx, "ann"))
	if d := r.take(many, 1); d.Remaining() != 9999 {
		t.Errorf("after Reset %d remain", d.Remaining())
	}
	must(t, r.Ban(ctx, "ann", time.Second, ""))
	r.clock.Advance(900 * time.Millisecond)
	r.take(many, 1)
	r.clock.Advance(r.take(many, 1).RetryAfter)
	if d := r.take(many, 1); !d.Allowed() {
		t.Errorf("when a ban ends: %v", d.Outcome)
	}
}

// Commands of other processes act within a second.
func TestCommandsElsewhere(t *testing.T) {
	r := newRig(t)
	r.flood(many, 3000)
	must(t, r.fake.Ban(ctx, "ann", time.Hour, ""))
	if n, _ := r.flood(many, 2000); n > 1000 || r.used(many) != 3000+int64(n) {
		t.Errorf("%d requests were admitted, the first a second before the last, and %d are used, want at most 1000 more", n, r.used(many))
	}
	_, err := r.fake.Unban(ctx, "ann")
	must(t, err)
	if n, _ := r.flood(many, 2000); n < 1000 {
		t.Errorf("%d of 2000 requests were admitted, want all after a second", n)
	}
	r.clock.Advance(time.Second)
	must(t, r.fake.Ban(ctx, "ann", time.Hour, ""))
	banned := func(what string) {
		if d := r.take(many, 3); d.Outcome != ratelimit.Banned || d.Cost != 3 || d.RetryAfter != time.Hour {
			t.Errorf("%s is %v of %d for %v", what, d.Outcome, d.Cost, d.RetryAfter)
		}
	}
	r.fake.once(func(context.Context) { banned("a request that comes while it is asked") })
	banned("a request after a second")
	r.clock.Advance(time.Hour - 10*time.Millisecond)
	r.take(many, 3)
	r.clock.Advance(10 * time.Millisecond)
	if d := r.take(many, 3); !d.Allowed() {
		t.Errorf("after the ban: %v", d.Outcome)
	}
}

// A share of before a Reset elsewhere is not spent after the next question, and Remaining is
// never more than the limit.
func TestResetElsewhere(t *testing.T) {
	r := newRig(t)
	r.flood(many, 2000)
	must(t, r.fake.Reset(ctx, "ann"))
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

// A refund, as of a request that ended in a 5xx, costs one question, and leaves the share. It
// ends a denial.
func TestRefunds(t *testing.T) {
	r := newRig(t)
	r.flood(many, 1000)
	before := r.fake.calls.Load()
	for range 20 {
		d := r.take(many, 1)
		must(t, r.Adjust(ctx, "ann", &d, 0, ""))
		r.clock.Advance(time.Millisecond)
		asked := r.fake.calls.Load()
		if r.take(many, 1); r.held() > 0 && r.fake.calls.Load() == asked {
			t.Error("after a refund: the next request was decided with the share, want a question first")
		}
		r.flood(many, 98)
	}
	if asked := r.fake.calls.Load() - before; asked > 60 {
		t.Errorf("%d questions for 2000 requests with 20 refunds, want at most 60", asked)
	}
	if d := r.take(many, 1); d.Remaining() != 10_000-1000-20*99-1 {
		t.Errorf("%d remain, want %d", d.Remaining(), 10_000-1000-20*99-1)
	}
	r = newRig(t)
	d := r.take(few, 10)
	for range 2 {
		r.take(few, 10)
	}
	must(t, r.Adjust(ctx, "ann", &d, 9, ""))
	if d := r.take(few, 1); !d.Allowed() {
		t.Errorf("after a refund: got %v, want no remembered denial", d.Outcome)
	}
	d.Cost = 9
	r.fake.late(func() { must(t, r.Adjust(ctx, "ann", &d, 0, "")) })
	if n, _ := r.flood(few, 2); n != 1 {
		t.Errorf("after a denial that a refund overtook %d of 1 requests were admitted", n)
	}
}

// Denials that are remembered do not hide from package failover that the engine hangs, however many
// requests are refused.
func TestFloodInAnOutage(t *testing.T) {
	for _, ban := range []time.Duration{time.Nanosecond, time.Hour} { // the first one has ended
		synctest.Test(t, func(t *testing.T) {
			e, hangs := newCounted(time.Now), new(atomic.Bool)
			l, err := New(e)
			must(t, err)
			defer l.Close()
			f, err := failover.New(l, failover.Options{OnChange: func(error) {}})
			must(t, err)
			defer f.Close()
			must(t, f.Ban(ctx, "ann", ban, ""))
			e.hook = func(asked call) error {
				if !hangs.Load() || asked.answered {
					return nil
				}
				<-asked.ctx.Done()
				return asked.ctx.Err()
			}
			for i := range 10_000 {
				go func() { _, _ = f.Take(ctx, "ann", lax, 1) }()
				if i%20 == 0 {
					go func() { _, _ = f.Take(ctx, "bob", many, 1) }()
				}
				time.Sleep(time.Millisecond)
				hangs.Store(i >= 5000)
			}
			time.Sleep(time.Second) // until all have ended
			if !f.Open() {
				t.Errorf("a ban of %v: five seconds after the engine hangs the circuit is closed: %+v, %+v", ban, f.Stats(), l.Stats())
			}
		})
	}
}
