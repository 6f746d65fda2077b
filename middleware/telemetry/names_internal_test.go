package telemetry

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Windows that are counted apart have different names.
func TestWindowNames(t *testing.T) {
	for want, q := range map[string]ratelimit.Quota{
		"minute":        ratelimit.PerMinute(1),
		"smooth-minute": ratelimit.PerMinute(1).Smooth(1),
		"90s":           {Limit: 1, Window: 90 * time.Second},
		"smooth-90s":    ratelimit.Quota{Limit: 1, Window: 90 * time.Second}.Smooth(1),
		"day":           ratelimit.PerDay(1),
		"local-day":     ratelimit.PerDay(1).In(time.UTC),
		"month":         ratelimit.PerMonth(1),
	} {
		if got := windowName(engine.Of(ratelimit.MustPlan("", ratelimit.Penalty{}, q)).Kind(0)); got != want {
			t.Errorf("%v: the window is named %q, want %q", q, got, want)
		}
	}
}
