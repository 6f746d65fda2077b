package failover_test

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// What the primary has decided holds in an outage.
func TestMirror(t *testing.T) {
	hasty := ratelimit.MustPlan("hasty", ratelimit.Penalty{
		Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour,
	}, ratelimit.PerSecond(1), ratelimit.PerDay(1000))
	for _, test := range []struct {
		name string
		run  func(r *rig)
	}{
		{"what was charged low there and settled high is used here, but for what was charged", func(r *rig) {
			a, b := r.take("a", daily), r.take("a", daily)
			r.adjust("a", &a, 300)
			r.wantUsed("less than half", r.local, "a", daily, "299/24h0m0s")
			r.adjust("a", &b, 300)
			r.lose()
			r.take("a", daily)
			r.wantUsed("with one more", r.local, "a", daily, "599/24h0m0s")
		}},
		{"a refund there is one here", func(r *rig) {
			d := r.takeN("a", daily, 600)
			calls := r.shared.calls.Load()
			r.adjust("a", &d, 0)
			if n := r.shared.calls.Load() - calls; n != 1 {
				r.Errorf("the primary was called %d times, want once", n)
			}
			r.wantUsed("here", r.local, "a", daily, "0/24h0m0s")
		}},
		{"less than half is not mirrored, unless a request is denied", func(r *rig) {
			r.takeN("a", daily, 499)
			r.takeN("b", daily, 500)
			r.takeN("c", daily, 499)
			r.takeN("c", daily, 600)
			r.lose()
			r.wantUsed("denied there", r.local, "c", daily, "499/24h0m0s")
			r.take("a", daily)
			r.take("b", daily)
			r.wantUsed("499 of 1000 there", r.local, "a", daily, "1/24h0m0s")
			r.wantUsed("500 of 1000 there", r.local, "b", daily, "501/24h0m0s")
		}},
		{"a soft quota is mirrored from the half of its limit on, and beyond it", func(r *rig) {
			soft := ratelimit.MustPlan("soft", ratelimit.Penalty{}, ratelimit.PerDay(1000).Soft())
			r.takeN("a", soft, 499)
			r.takeN("b", soft, 1500)
			r.lose()
			r.wantUsed("499 of 1000 there", r.local, "a", soft, "0/24h0m0s")
			r.wantUsed("1500 of 1000 there", r.local, "b", soft, "1500/24h0m0s")
		}},
		{"a ban there is a ban here", func(r *rig) {
			var d ratelimit.Decision
			for d.Outcome != ratelimit.Banned {
				d = r.take("a", hasty)
			}
			r.lose()
			if here := r.take("a", hasty); here.Outcome != ratelimit.Banned || here.BanEnds != d.BanEnds {
				r.Errorf("got %v until %d, want banned until %d", here.Outcome, here.BanEnds, d.BanEnds)
			} else if !d.Struck || here.Struck || here.BanReason() != "strikes" {
				r.Errorf("the ban started there: %v, and here: %v for %q, want true and false for strikes", d.Struck, here.Struck, here.BanReason())
			}
			time.Sleep(2 * time.Hour)
			if here := r.take("a", hasty); !here.Allowed() {
				r.Errorf("after the ban: got %v", here.Outcome)
			}
		}},
		{"the longest ban by hand there is the one here, with its reason", func(r *rig) {
			must(r, r.Ban(ctx, "b", time.Hour, ""))
			var ends int64
			for _, ban := range []struct {
				length time.Duration
				reason string
			}{{time.Minute, "spam"}, {time.Hour, "loops"}, {time.Minute, "spam"}} {
				must(r, r.shared.engine.Ban(ctx, "a", ban.length, ban.reason))
				ends = max(ends, r.take("a", hasty).BanEnds)
			}
			r.lose()
			if a, b := r.take("a", hasty), r.take("b", hasty); a.BanReason() != "loops" || a.BanEnds != ends || b.BanReason() != "by hand" {
				r.Errorf("banned for %q until %d and for %q, want loops until %d, and by hand", a.BanReason(), a.BanEnds, b.BanReason(), ends)
			}
		}},
		{"a subject that was reset is fresh", func(r *rig) {
			r.takeN("a", daily, 1000)
			must(r, r.Reset(ctx, "a"))
			r.lose()
			if d := r.take("a", daily); d.Remaining() != 999 {
				r.Errorf("%d remaining, want 999", d.Remaining())
			}
		}},
		{"what another process gave back there stays used here", func(r *rig) {
			d := r.takeN("a", daily, 900)
			must(r, r.shared.engine.Adjust(ctx, "a", &d, 599, ""))
			r.take("a", daily)
			r.wantUsed("600 there", r.local, "a", daily, "900/24h0m0s")
		}},
		{"a peek sees it, and is not charged later", func(r *rig) {
			r.takeN("a", daily, 1000)
			r.lose()
			before := r.Stats().Pending
			if d, err := r.Peek(ctx, "b", daily); err != nil || !d.Allowed() || r.Stats().Pending != before {
				r.Errorf("got %v, %v, and %d subjects in the journal, want allowed and %d", d.Outcome, err, r.Stats().Pending, before)
			}
			if d, err := r.Peek(ctx, "a", daily); err != nil || d.Outcome != ratelimit.Limited {
				r.Errorf("got %v, %v, want limited", d.Outcome, err)
			}
		}},
	} {
		t.Run(test.name, func(t *testing.T) { run(t, withLocal, failover.Options{}, test.run) })
	}
}

// A restart during an outage is no second quota if the local engine is saved and loaded.
func TestMirrorOutlivesARestart(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		r.takeN("a", daily, 600)
		r.lose()
		r.takeN("a", daily, 100)
		after, err := memory.New(memory.Options{Secret: r.local.Secret()})
		must(r, err)
		must(r, r.local.Save(after.Load))
		r.use(r.shared, failover.Options{Local: after})
		if d := r.take("a", daily); d.Remaining() != 299 {
			r.Errorf("700 of 1000 were used before the restart: got %d remaining, want 299", d.Remaining())
		}
	})
}

// A local engine that fails is brought up to date by the next decision.
func TestMirrorAfterAFailure(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		local := &failing{Limiter: r.local, fails: true}
		r.use(r.shared, failover.Options{Local: local})
		r.takeN("a", daily, 600)
		r.wantUsed("the local engine failed", r.local, "a", daily, "0/24h0m0s")
		local.fails = false
		r.take("a", daily)
		r.wantUsed("the next decision", r.local, "a", daily, "601/24h0m0s")
	})
}

// A failing engine is a local one that adjusts nothing at times, and otherwise lets
// other goroutines run before.
type failing struct {
	*memory.Limiter
	fails bool
}

func (f *failing) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	if f.fails {
		return ratelimit.ErrUnavailable
	}
	for range 10 {
		runtime.Gosched()
	}
	return f.Limiter.Adjust(ctx, subject, d, units, id)
}

// Many requests at once of a subject that has used more than half leave what the
// primary has counted, not more.
func TestMirrorOfConcurrentAnswers(t *testing.T) {
	run(t, withLocal, failover.Options{}, func(r *rig) {
		r.use(r.shared, failover.Options{Local: &failing{Limiter: r.local}})
		r.takeN("a", daily, 500)
		var wg sync.WaitGroup
		for range 64 {
			wg.Go(func() {
				for range 5 {
					r.take("a", daily)
				}
			})
		}
		wg.Wait()
		r.wantUsed("there", r.shared.engine, "a", daily, "820/24h0m0s")
		r.wantUsed("here", r.local, "a", daily, "820/24h0m0s")
	})
}

// A ban of the local engine does not hide usage from the mirror.
func TestMirrorDuringALocalBan(t *testing.T) {
	hasty := ratelimit.MustPlan("hasty", ratelimit.Penalty{
		Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour,
	}, ratelimit.PerSecond(5), ratelimit.PerDay(100))
	run(t, withLocal, failover.Options{}, func(r *rig) {
		r.lose()
		for r.take("a", hasty).Outcome != ratelimit.Banned {
		}
		r.regain()
		for range 12 {
			r.takeN("a", hasty, 5)
			time.Sleep(time.Second)
		}
		r.wantUsed("there", r.shared.engine, "a", hasty, "0/1s 65/24h0m0s")
		r.wantUsed("here", r.local, "a", hasty, "0/1s 65/24h0m0s")
	})
}
