package ratelimit_test

import (
	"testing"
	"testing/synctest"
	"time"
	_ "time/tzdata"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var must = testcheck.NoError

func location(t *testing.T, name string) *time.Location {
	t.Helper()
	loc := testcheck.Must(time.LoadLocation(name))
	return loc
}

// A zone is the same by whatever pointer, and has a text form only if its name leads
// back to it.
func TestZonesAreInterned(t *testing.T) {
	a, b := location(t, "Europe/Berlin"), location(t, "Europe/Berlin")
	if a == b {
		t.Fatal("LoadLocation returned one pointer twice, and this test tests nothing")
	}
	if ratelimit.PerDay(5).In(a) != ratelimit.PerDay(5).In(b) {
		t.Error("two quotas in one zone differ")
	}
	for _, loc := range []*time.Location{
		time.FixedZone("Europe/Berlin", 3600), time.FixedZone("", 3600), time.FixedZone("UTC+1", 3600), time.FixedZone("Local", 3600), time.FixedZone("UTC", 3600),
	} {
		q := ratelimit.PerDay(5).In(loc)
		if q == ratelimit.PerDay(5).In(a) {
			t.Errorf("%v is taken for Berlin", loc)
		}
		if _, err := q.MarshalText(); err == nil {
			t.Errorf("a quota in the location %v, which does not read back, was marshalled", loc)
		}
		if _, err := ratelimit.NewPlan("", ratelimit.Penalty{}, q); err != nil {
			t.Errorf("a quota in the location %v makes no plan: %v", loc, err)
		}
	}
}

// A location is another value if it is loaded after the clocks have changed, but the zone
// is the same.
func TestZoneLoadedAfterAChangeOfTheClocks(t *testing.T) {
	q := ratelimit.PerDay(5).In(location(t, "Europe/Madrid"))
	synctest.Test(t, func(t *testing.T) { // begins in January 2000
		for range 2 {
			loc := location(t, "Europe/Madrid")
			later := ratelimit.PerDay(5).In(loc)
			if text, err := later.MarshalText(); later != q || string(text) != "5/day in Europe/Madrid" || err != nil {
				t.Errorf("%v, loaded on %v: got the text %q, %v, want the quota from before", later, time.Now().Format(time.DateOnly), text, err)
			}
			time.Sleep(180 * 24 * time.Hour)
		}
	})
}

func TestPlanBoundaries(t *testing.T) {
	p := ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(8).In(location(t, "Europe/Berlin")), ratelimit.PerMonth(7).From(31))
	at := time.Date(2026, time.March, 29, 12, 0, 30, 1, time.UTC)
	want := [][5]string{
		{"03-27 23:00", "03-28 23:00", "03-29 22:00", "03-30 22:00", "03-31 22:00"},
		{"01-31 00:00", "02-28 00:00", "03-31 00:00", "04-30 00:00", "05-31 00:00"},
	}
	for i := range want {
		var got [5]string
		b := p.Numbers().Boundaries(i, at.UnixNano())
		for k := range b {
			got[k] = time.Unix(b[k], 0).UTC().Format("01-02 15:04")
		}
		if got != want[i] {
			t.Errorf("%v: boundaries %q, want %q", engine.Of(p).Quota(i), got, want[i])
		}
		for k := 1; k < 5; k++ { // in any order, so that nothing but the last answer is kept
			for _, now := range []int64{b[k-1] * 1e9, b[k]*1e9 - 1} {
				if end := engine.Of(p).WindowEnd(i, now); end != b[k] {
					t.Errorf("%v: the window at %v ends at %v, want %v", engine.Of(p).Quota(i), now, end, b[k])
				}
			}
			if start := engine.Of(p).WindowStart(i, b[k]); start != b[k-1] {
				t.Errorf("%v: the window that ends at %v began at %v, want %v", engine.Of(p).Quota(i), b[k], start, b[k-1])
			}
		}
		if start, want := engine.Of(p).WindowStart(i, b[2]+30), b[2]+30-int64(engine.Of(p).Quota(i).Window/time.Second); start != want {
			t.Errorf("%v: a window of another plan began at %v, want %v", engine.Of(p).Quota(i), start, want)
		}
	}
}
