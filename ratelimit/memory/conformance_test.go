package memory

import (
	"context"
	"flag"
	"maps"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// histories is set to 40000 for the long run of random histories.
var histories = flag.Int("histories", race.Fewer(300), "random histories in each test that makes some")

func TestConformance(t *testing.T) {
	enginetest.Run(t, newEngine, enginetest.Gaps{})
}

// Histories restart the engine at any point, from what it saves then.
func TestAgreesWithTheModel(t *testing.T) {
	testenv.Long(t, "TestConformance makes the first 150 of these histories")
	enginetest.Histories(t, newEngine, *histories, 400)
}

func newEngine(t *testing.T, start time.Time) enginetest.Engine {
	clock := ratelimittest.NewClock(start)
	l, d := newLimiter(t, Options{Now: clock.Now}), disk{}
	return enginetest.Engine{Limiter: l, Set: clock.Set, Restart: func() ratelimit.Limiter {
		save(t, l, d)
		l = restart(t, l, slices.Collect(maps.Values(d)))
		return l
	}}
}

var ctx = context.Background()

var noon = time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)

func noonSharp() time.Time { return noon.Add(-30 * time.Second) }

func newLimiter(t testing.TB, opts Options) *Limiter {
	t.Helper()
	l, err := New(opts)
	must(t, err)
	return l
}

func take(t testing.TB, l ratelimit.Limiter, subject string, plan *ratelimit.Plan) ratelimit.Decision {
	t.Helper()
	return takeUnits(t, l, subject, plan, 1)
}

func takeUnits(t testing.TB, l ratelimit.Limiter, subject string, plan *ratelimit.Plan, units int64) ratelimit.Decision {
	t.Helper()
	d, err := l.Take(ctx, subject, plan, units)
	if err != nil {
		t.Errorf("Take(%q, %v, %d): %v", subject, plan, units, err)
	}
	return d
}

func diffDecisions(want, got ratelimit.Decision) string {
	return diffAll([]ratelimit.Decision{want}, []ratelimit.Decision{got})
}

func diffAll(want, got []ratelimit.Decision) string {
	if slices.Equal(want, got) { // far sooner than Diff
		return ""
	}
	return cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b }))
}
