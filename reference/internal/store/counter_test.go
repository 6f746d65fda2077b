package store_test

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// days is a database that fails after a number of writes, if that is not negative.
type days struct {
	store.DailyUses
	writes   int
	pruned   []time.Time
	pruneErr error
}

func (d *days) AddDailyUse(ctx context.Context, uses ...store.DailyUse) error {
	if d.writes == 0 {
		return store.ErrUnavailable
	}
	d.writes--
	return d.DailyUses.AddDailyUse(ctx, uses...)
}

func (d *days) PruneDailyUse(ctx context.Context, before time.Time) error {
	d.pruned = append(d.pruned, before)
	return errors.Join(d.pruneErr, d.DailyUses.PruneDailyUse(ctx, before))
}

func newDays(t *testing.T) *days {
	t.Helper()
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pets.db"), sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return &days{DailyUses: db, writes: -1}
}

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

// midnight begins the day of noon.
var midnight = store.Day(noon)

func checkDays(t *testing.T, d *store.DailyCounter, db store.DailyUses, owner string, since time.Time, want ...store.DailyUse) {
	t.Helper()
	must(t, d.Task(db).Save(t.Context()))
	got, err := db.ListDailyUse(t.Context(), owner, since)
	must(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("days of %s (-want +got):\n%s", owner, diff)
	}
}

func TestDailyUseIsCountedPerOwnerAndDay(t *testing.T) {
	now := midnight.Add(24*time.Hour - 1)
	d := store.NewDailyCounter(func() time.Time { return now })
	db := newDays(t)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				d.Count("ada", true)
				d.Count("ada", false)
			}
		})
	}
	wg.Wait()
	d.Count("bob", false)
	today := store.DailyUse{Owner: "ada", Day: midnight, Allowed: 400, Denied: 400}
	if every := d.Task(db).Every; every != 10*time.Second {
		t.Errorf("daily use is saved every %v, want 10 s", every)
	}
	checkDays(t, d, db, "ada", noon, today)
	for range 2 { // the second time there is nothing to save
		must(t, d.Task(db).Save(t.Context()))
	}
	checkDays(t, d, db, "ada", noon, today)

	now = now.Add(1)
	d.Count("ada", true)
	tomorrow := store.DailyUse{Owner: "ada", Day: midnight.AddDate(0, 0, 1), Allowed: 1}
	checkDays(t, d, db, "ada", noon, today, tomorrow)
	checkDays(t, d, db, "ada", now, tomorrow)
	checkDays(t, d, db, "bob", noon, store.DailyUse{Owner: "bob", Day: midnight, Denied: 1})

	// A clock that steps back finds its day again.
	now = noon
	d.Count("ada", true)
	today.Allowed++
	checkDays(t, d, db, "ada", noon, today, tomorrow)
	checkDays(t, d, db, "ada", tomorrow.Day, tomorrow)
	must(t, d.Task(db).Save(t.Context()))
	checkDays(t, d, db, "ada", noon, today, tomorrow)
}

func TestDailyUseWaitsForTheDatabase(t *testing.T) {
	const owners = 1000
	d := store.NewDailyCounter(at(noon))
	count := func() {
		for i := range owners {
			d.Count(fmt.Sprint(i), i%2 == 0)
		}
	}
	count()
	db := newDays(t)
	// It fails in the middle, and then at once.
	db.writes = 2
	for range 2 {
		if err := d.Task(db).Save(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("saving = %v, want the database's error", err)
		}
		count()
	}
	db.writes = -1
	must(t, d.Task(db).Save(t.Context()))
	for i := range owners {
		want := store.DailyUse{Owner: fmt.Sprint(i), Day: midnight, Allowed: 3}
		if i%2 == 1 {
			want.Allowed, want.Denied = 0, 3
		}
		got, err := db.ListDailyUse(t.Context(), want.Owner, midnight)
		if err != nil || len(got) != 1 || got[0] != want {
			t.Fatalf("stored are %+v (%v), want each of the 3 once: %+v", got, err, want)
		}
	}
}

func TestOldDaysAreRemovedOnceADay(t *testing.T) {
	now := noon
	d := store.NewDailyCounter(func() time.Time { return now })
	db := newDays(t)
	oldest := midnight.AddDate(0, 0, 1-store.KeepDays)
	for _, day := range []time.Time{oldest.AddDate(0, 0, -1), oldest} {
		must(t, db.AddDailyUse(t.Context(), store.DailyUse{Owner: "ada", Day: day, Allowed: 1}))
	}
	save := func() {
		t.Helper()
		must(t, d.Task(db).Save(t.Context()))
	}
	db.pruneErr = store.ErrUnavailable // so it must be done by the next save
	if err := d.Task(db).Save(t.Context()); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("Save = %v, want ErrUnavailable", err)
	}
	db.pruneErr = nil
	save()
	checkDays(t, d, db, "ada", time.Time{}, store.DailyUse{Owner: "ada", Day: oldest, Allowed: 1})
	now = midnight.Add(24*time.Hour - 1)
	save()
	now = now.Add(1)
	save()
	save()
	if diff := cmp.Diff([]time.Time{oldest, oldest, oldest.AddDate(0, 0, 1)}, db.pruned); diff != "" {
		t.Errorf("old days were removed before (-want +got):\n%s", diff)
	}
}

// Each use counts for the day on which it was, also if the database was away at midnight.
func TestDeprecatedUseIsCountedPerOwnerAndDay(t *testing.T) {
	first := midnight.Add(24*time.Hour - time.Microsecond)
	now := first
	d := store.NewDeprecatedCounter(func() time.Time { return now })
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pets.db"), sqlite.Options{})
	must(t, err)
	defer db.Close()
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				d.Count("getPet", "ada")
			}
		})
	}
	wg.Wait()
	d.Count("getPet", "bob")
	now = now.Add(time.Microsecond)
	d.Count("getPet", "ada")
	d.Count("listPets", "ada")
	for range 2 { // the second time there is nothing to save
		must(t, d.Task(db).Save(t.Context()))
	}
	for since, recent := range map[time.Time][3]int64{midnight: {401, 1, 1}, now: {1, 0, 1}} {
		want := []store.DeprecatedUse{
			{Operation: "getPet", Owner: "ada", Count: 401, Last: now, Recent: recent[0]},
			{Operation: "getPet", Owner: "bob", Count: 1, Last: first, Recent: recent[1]},
			{Operation: "listPets", Owner: "ada", Count: 1, Last: now, Recent: recent[2]},
		}
		got, err := db.ListDeprecatedUse(t.Context(), since)
		must(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("uses since %v (-want +got):\n%s", since, diff)
		}
	}
}
