package failover_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// What the primary said of a window that has not begun here is not lost: it is
// charged in that window.
func TestPrimaryWithAClockAhead(t *testing.T) {
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	for _, test := range []struct {
		name  string
		ahead time.Duration
		now   string // used here
		later string // a second later, in the next minute
	}{
		{"the clocks agree", 0, "10/1m0s 510/24h0m0s", "0/1m0s 510/24h0m0s"},
		{"the primary is in the next minute", 2 * time.Second, "10/1m0s 510/24h0m0s", "10/1m0s 510/24h0m0s"},
		{"the primary is in a minute that has ended", -time.Minute, "0/1m0s 510/24h0m0s", "0/1m0s 510/24h0m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(12*time.Hour + 30*time.Minute + 59*time.Second + 500*time.Millisecond)
				engine, err := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(test.ahead) }})
				if err != nil {
					t.Fatal(err)
				}
				primary, local := &shared{engine: engine}, newEngine(t)
				l, err := failover.New(primary, failover.Options{Local: local, Backoff: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				for _, c := range []ratelimit.Charge{{Plan: daily, Cost: 500}, {Plan: minute, Cost: 10}} {
					if _, err := l.Take(ctx, "a", c.Plan, c.Cost); err != nil {
						t.Fatal(err)
					}
				}
				for _, want := range []string{test.now, test.later} {
					if got := used(t, local, "a", minute); got != want {
						t.Errorf("the local engine has counted %s, want %s", got, want)
					}
					time.Sleep(time.Second)
				}
			})
		})
	}
}

// What was admitted here is charged by the time here, and counted by the clock of the
// primary.
func TestMergeIntoAPrimaryWithAnotherClock(t *testing.T) {
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	for _, test := range []struct {
		name  string
		ahead time.Duration // of the primary
		want  string
	}{
		{"the clocks agree", 0, "7/1m0s 7/24h0m0s"},
		{"the minute has ended there", 2 * time.Second, "0/1m0s 7/24h0m0s"},
		{"the minute has not begun there", -time.Minute, "7/1m0s 7/24h0m0s"},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(12*time.Hour + 30*time.Minute + 59*time.Second + 500*time.Millisecond)
				engine, err := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(test.ahead) }})
				if err != nil {
					t.Fatal(err)
				}
				primary := &shared{engine: engine}
				l, err := failover.New(primary, failover.Options{Local: newEngine(t)})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				primary.set(down)
				if _, err := l.Take(ctx, "a", minute, 7); err != nil {
					t.Fatal(err)
				}
				primary.set(nil)
				if _, err := l.Peek(ctx, "a", minute); err != nil {
					t.Fatal(err)
				}
				if got := used(t, engine, "a", minute); got != test.want {
					t.Errorf("the primary has counted %s, want %s", got, test.want)
				}
			})
		})
	}
}

// A mirrored ban is as long here as there, and the requests during it do not move its end.
func TestBanOfAPrimaryWithAnotherClock(t *testing.T) {
	for _, ahead := range []time.Duration{-2 * time.Hour, -90*time.Second - 250*time.Millisecond, 0, 90*time.Second + 250*time.Millisecond, 2 * time.Hour} {
		t.Run(ahead.String(), func(t *testing.T) {
			run(t, withLocal, failover.Options{}, func(r *rig) {
				engine, err := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(ahead) }})
				if err != nil {
					t.Fatal(err)
				}
				r.shared.set(nil)
				r.shared.engine = engine
				if err := engine.Ban(ctx, "a", time.Minute); err != nil {
					t.Fatal(err)
				}
				var ends int64
				for range 20 {
					r.take("a", daily)
					d, err := r.local.Peek(ctx, "a", daily)
					if err != nil {
						t.Fatal(err)
					}
					if ends == 0 {
						ends = d.BanEnds
					}
					if left := time.Until(time.Unix(d.BanEnds, 0)); d.Outcome != ratelimit.Banned || left > 61*time.Second || d.BanEnds != ends {
						t.Fatalf("the local engine says %v for %v, until %d before %d; want the minute of the primary", d.Outcome, left, ends, d.BanEnds)
					}
					time.Sleep(123 * time.Millisecond)
				}
				if left := time.Until(time.Unix(ends, 0)); left < 56*time.Second {
					t.Errorf("the ban ends in %v, want what is left of a minute", left)
				}
			})
		})
	}
}
