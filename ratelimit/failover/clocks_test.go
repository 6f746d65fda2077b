package failover_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// anotherClock runs a test half a second before a minute ends, with a primary whose clock is
// ahead.
func anotherClock(t *testing.T, name string, ahead time.Duration, test func(*rig)) {
	t.Run(name, func(t *testing.T) {
		run(t, withLocal, failover.Options{}, func(r *rig) {
			time.Sleep(29*time.Second + 500*time.Millisecond)
			engine, err := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
			must(t, err)
			r.shared.engine = engine
			test(r)
		})
	})
}

// What the primary said of a window that has not begun here is not lost: it is charged in
// that window. What was admitted here is charged by the time here, and counted by the clock
// of the primary.
func TestPrimaryWithAnotherClock(t *testing.T) {
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	for _, test := range []struct {
		name   string
		ahead  time.Duration // of the primary
		now    string        // used here
		later  string        // a second later, in the next minute
		merged string        // used there, of what was admitted here
	}{
		{"the clocks agree", 0, "10/1m0s 510/24h0m0s", "0/1m0s 510/24h0m0s", "7/1m0s 7/24h0m0s"},
		{"the primary is in the next minute", 2 * time.Second, "10/1m0s 510/24h0m0s", "10/1m0s 510/24h0m0s", "0/1m0s 7/24h0m0s"},
		{"the primary is in the minute before", -time.Minute, "0/1m0s 510/24h0m0s", "0/1m0s 510/24h0m0s", "7/1m0s 7/24h0m0s"},
	} {
		anotherClock(t, test.name+", mirrored", test.ahead, func(r *rig) {
			r.takeN("a", daily, 500)
			r.takeN("a", minute, 10)
			for _, want := range []string{test.now, test.later} {
				r.wantUsed("by the local engine", r.local, "a", minute, want)
				time.Sleep(time.Second)
			}
		})
		anotherClock(t, test.name+", merged", test.ahead, func(r *rig) {
			r.shared.set(down)
			r.takeN("a", minute, 7)
			r.shared.set(nil)
			_, err := r.Peek(ctx, "a", minute)
			must(r, err)
			r.wantUsed("by the primary", r.shared.engine, "a", minute, test.merged)
		})
	}
}

// A mirrored ban is as long here as there, and the requests during it do not move its end.
func TestBanOfAPrimaryWithAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{-2 * time.Hour, -90*time.Second - 250*time.Millisecond, 0, 90*time.Second + 250*time.Millisecond, 2 * time.Hour} {
		anotherClock(t, ahead.String(), ahead, func(r *rig) {
			must(r, r.shared.engine.Ban(ctx, "a", time.Minute, ""))
			var ends int64
			for range 20 {
				r.take("a", daily)
				d, err := r.local.Peek(ctx, "a", daily)
				must(r, err)
				if ends == 0 {
					ends = d.BanEnds
				}
				if left := time.Until(time.Unix(d.BanEnds, 0)); d.Outcome != ratelimit.Banned || left > 61*time.Second || d.BanEnds != ends {
					r.Fatalf("the local engine says %v for %v, until %d before %d; want the minute of the primary", d.Outcome, left, ends, d.BanEnds)
				}
				time.Sleep(123 * time.Millisecond)
			}
			if left := time.Until(time.Unix(ends, 0)); left < 56*time.Second {
				r.Errorf("the ban ends in %v, want what is left of a minute", left)
			}
		})
	}
}

// A client that has used the burst of a smooth quota gets in an outage what comes back, and no
// second burst. The primary does not count it: its bucket fills up meanwhile.
func TestSmoothQuotaInAnOutage(t *testing.T) {
	smooth := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, ratelimit.PerMinute(60).Smooth(60))
	run(t, withLocal, failover.Options{}, func(r *rig) {
		start, admitted := time.Now(), int64(0)
		use := func() {
			for d := r.take("a", smooth); d.Allowed(); d = r.take("a", smooth) {
				admitted++
			}
		}
		use()
		r.lose()
		for range 40 {
			use()
			time.Sleep(700 * time.Millisecond)
		}
		if most := 60 + int64(time.Since(start)/time.Second); admitted > most || admitted < most-1 {
			r.Errorf("%d units were admitted, want %d", admitted, most)
		}
		r.regain()
		r.wantUsed("at the primary", r.shared.engine, "a", smooth, fmt.Sprintf("%d/1m0s", 60-int64(time.Since(start)/time.Second)))
	})
}
