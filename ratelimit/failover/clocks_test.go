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
		{"the primary is in a minute that is over", -time.Minute, "12:30:59.500", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				time.Sleep(12*time.Hour + 30*time.Minute + 59*time.Second + 500*time.Millisecond)
				engine, err := memory.New(memory.Options{Now: func() time.Time { return time.Now().Add(test.ahead) }})
				if err != nil {
					t.Fatal(err)
				}
				primary, local := &shared{engine: engine}, &told{Limiter: newEngine(t)}
				l, err := failover.New(primary, failover.FailLocal, failover.Options{Local: local, FirstProbe: time.Hour})
				if err != nil {
					t.Fatal(err)
				}
				defer l.Close()
				if _, err := l.Take(ctx, "a", minute, 10); err != nil {
					t.Fatal(err)
				}
				primary.set(down)
				if _, err := l.Take(ctx, "a", minute, 1); err != nil {
					t.Fatal(err)
				}
				if at := local.at.UTC().Format("15:04:05.000"); at != test.at || local.units[0] != test.units {
					t.Errorf("the local engine was charged %d in the minute of %s, want %d in that of %s", local.units[0], at, test.units, test.at)
				}
			})
		})
	}
}

// A denial that comes too late to be the answer is remembered all the same.
func TestLateDenial(t *testing.T) {
	run(t, failover.FailLocal, failover.Options{}, func(r *rig) {
		if _, err := r.shared.engine.Take(ctx, "a", daily, 1000); err != nil { // by another process
			r.Fatal(err)
		}
		r.shared.set(slow(80 * time.Millisecond))
		if d := r.take("a", daily); !d.Allowed() {
			r.Fatalf("before the primary has answered: got %v", d.Outcome)
		}
		time.Sleep(80 * time.Millisecond)
		synctest.Wait()
		r.lose()
		if d := r.take("a", daily); d.Outcome != ratelimit.Limited {
			r.Errorf("after the primary said that the quota is used up: got %v, want limited", d.Outcome)
		}
	})
}
