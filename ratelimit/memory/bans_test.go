package memory_test

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A list of bans names every subject, also one whose ban was over for a while
// before it was banned again, or before the clock stepped back.
func TestBansHaveNames(t *testing.T) {
	for _, restart := range []bool{false, true} {
		for name, after := range map[string]struct {
			wait  time.Duration
			again func(*testing.T, *memory.Limiter, *enginetest.Clock)
		}{
			"a clock that steps back": {2 * time.Second, func(_ *testing.T, _ *memory.Limiter, clock *enginetest.Clock) { clock.Set(noon) }},
			"another ban":             {2 * time.Minute, func(t *testing.T, l *memory.Limiter, _ *enginetest.Clock) { ban(t, l, "alice", time.Hour) }},
		} {
			t.Run(fmt.Sprint(name, ", restart: ", restart), func(t *testing.T) {
				clock := enginetest.NewClock(noon)
				opts := memory.Options{MaxSubjects: 1000, Now: clock.Now}
				l := newLimiter(t, opts)
				banByStrikes(t, l, "alice") // whose record outlives the ban
				clock.Set(noon.Add(after.wait))
				for i := range 200 {
					ban(t, l, fmt.Sprint("subject ", i), time.Minute)
				}
				if restart {
					d := disk{}
					save(t, l, d)
					opts.Secret = l.Secret()
					l = newLimiter(t, opts)
					records := slices.SortedFunc(maps.Values(d), func(a, b memory.Record) int { return cmp.Compare(a.Expires, b.Expires) })
					if err := l.Load(records); err != nil {
						t.Fatal(err)
					}
				}
				after.again(t, l, clock)
				bans, err := l.Bans(ctx)
				if err != nil || len(bans) != 201 {
					t.Errorf("%d bans and error %v, want 201 bans", len(bans), err)
				}
				if !slices.ContainsFunc(bans, func(b ratelimit.Ban) bool { return b.Subject == "alice" }) {
					t.Errorf("no ban of alice is listed, whose ban is in force")
				}
			})
		}
	}
}

func ban(t *testing.T, l *memory.Limiter, subject string, length time.Duration) {
	t.Helper()
	if err := l.Ban(ctx, subject, length); err != nil {
		t.Fatal(err)
	}
}

// banByStrikes brings the subject a ban of one second, which is forgiven in an hour.
func banByStrikes(t *testing.T, l *memory.Limiter, subject string) {
	t.Helper()
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Second, Growth: 1, Max: time.Second, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", penalty, ratelimit.PerMinute(1))
	for range 3 {
		take(t, l, subject, plan)
	}
}
