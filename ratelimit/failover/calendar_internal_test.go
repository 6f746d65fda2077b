package failover

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Usage of an outage over the end of a month is that of the new month, and that of the
// day in its own zone.
func TestEntryOverTheEndOfAMonth(t *testing.T) {
	p := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(100).In(time.FixedZone("", -3600)), ratelimit.PerMonth(100))
	var e entry
	midnight := time.Date(2026, time.April, 1, 0, 0, 0, 0, time.UTC).UnixNano()
	for _, step := range []struct {
		at         int64
		day, month int64 // used after 10 more units
	}{
		{midnight - 2, 10, 10},
		{midnight - 1, 20, 20},
		{midnight, 30, 10},
		{midnight + int64(time.Hour) - 1, 40, 20},
		{midnight + int64(time.Hour), 10, 30},
		{midnight - 1, 20, 40}, // entered late
	} {
		e.add(p, 10, step.at)
		if got := e.charges[0].units; got != [ratelimit.MaxQuotas]int64{step.day, step.month} {
			t.Errorf("%v after midnight: %d units of the day and %d of the month, want %d and %d",
				time.Duration(step.at-midnight), got[0], got[1], step.day, step.month)
		}
	}
	if !e.credit(p, 10, midnight) || e.charges[0].units != [ratelimit.MaxQuotas]int64{20, 30} {
		t.Errorf("units of the month, but of the day before, were given back: %v are left, want 20 and 30", e.charges[0].units)
	}
	lastDay := time.Date(2026, time.April, 30, 23, 59, 59, 0, time.UTC).UnixNano()
	if used := e.used(lastDay); used != 30 {
		t.Errorf("at the end of the month %d units are used, want 30", used)
	}
	if used := e.used(lastDay + int64(time.Second)); used != 0 {
		t.Errorf("after the month %d units are used, want none", used)
	}
}
