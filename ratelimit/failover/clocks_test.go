package failover_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A told engine is a local one that remembers what it was charged.
type told struct {
	*memory.Limiter
	at    time.Time
	units [ratelimit.MaxQuotas]int64
}

func (l *told) AddUsage(_ context.Context, _ string, _ *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	l.at, l.units = at, units
	return nil
}

// What the primary said of a window that has not begun here is not lost: it is
// charged in that window.
func TestPrimaryWithAClockAhead(t *testing.T) {
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(10), ratelimit.PerDay(1000))
	for _, test := range []struct {
		name  string
		ahead time.Duration
		at    string
		units int64 // of the minute
	}{
		{"the clocks agree", 0, "12:30:59.500", 10},
		{"the primary is in the next minute", 2 * time.Second, "12:31:00.000", 10},
		{"the primary is in a minute that has ended", -time.Minute, "12:30:59.500", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(12*time.Hour + 30*time.Minute + 59*time.Second + 500*time.Millisecond)
				engine, err := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(test.ahead) }})
				if err != nil {
					t.Fatal(err)
				}
				primary, local := &shared{engine: engine}, &told{Limiter: newEngine(t)}
				l, err := failover.New(primary, failover.FailLocal, failover.Options{Local: local, MinBackoff: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				if _, err := l.Take(ctx, "a", minute, 10); err != nil {
					t.Fatal(err)
				}
				if at := local.at.UTC().Format("15:04:05.000"); at != test.at || local.units[0] != test.units {
					t.Errorf("the local engine was charged %d in the minute of %s, want %d in that of %s", local.units[0], at, test.units, test.at)
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
				l, err := failover.New(primary, failover.FailLocal, failover.Options{Local: newEngine(t)})
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
