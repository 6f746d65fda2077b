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

// uses adds up counts, and fails after a number of calls, if that is not negative.
type uses struct {
	sums  map[string]int64
	last  map[string]time.Time
	calls int
}

func (u *uses) AddDeprecatedUse(_ context.Context, add ...store.DeprecatedUse) error {
	if u.calls == 0 {
		return store.ErrUnavailable
	}
	u.calls--
	for _, a := range add {
		if err := a.Validate(); err != nil {
			return err
		}
		u.sums[a.Operation+" "+a.Owner] += a.Count
		u.last[a.Operation+" "+a.Owner] = a.Last
	}
	return nil
}

func (u *uses) ListDeprecatedUse(context.Context, time.Time) ([]store.DeprecatedUse, error) {
	return nil, nil
}

func newUses(calls int) *uses {
	return &uses{sums: map[string]int64{}, last: map[string]time.Time{}, calls: calls}
}

func TestDeprecatedUseIsCountedPerOwner(t *testing.T) {
	now := noon
	d := store.NewDeprecatedCounter(func() time.Time { return now })
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 100 {
				d.Count("getPet", "ada")
			}
		})
	}
	wg.Wait()
	now = noon.Add(time.Minute)
	d.Count("getPet", "bob")
	d.Count("listPets", "ada")

	db := newUses(-1)
	if err := d.Task(db).Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{"getPet ada": 400, "getPet bob": 1, "listPets ada": 1}
	if diff := cmp.Diff(want, db.sums); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	wantLast := map[string]time.Time{"getPet ada": noon, "getPet bob": now, "listPets ada": now}
	if diff := cmp.Diff(wantLast, db.last); diff != "" {
		t.Errorf("latest uses (-want +got):\n%s", diff)
	}
	if err := d.Task(db).Save(t.Context()); err != nil || db.sums["getPet ada"] != 400 {
		t.Errorf("a second save = %v, and counts %d, want nil and the 400 of before", err, db.sums["getPet ada"])
	}
}

func TestDeprecatedUseWaitsForTheDatabase(t *testing.T) {
	const owners = 1000
	d := store.NewDeprecatedCounter(time.Now)
	count := func() {
		for i := range owners {
			d.Count("getPet", fmt.Sprint(i))
		}
	}
	count()
	// It fails in the middle, and then at once.
	db := newUses(2)
	for range 2 {
		if err := d.Task(db).Save(t.Context()); !errors.Is(err, store.ErrUnavailable) {
			t.Fatalf("saving = %v, want the database's error", err)
		}
		count()
	}
	if len(db.sums) == 0 || len(db.sums) == owners {
		t.Fatalf("%d owners were stored before it failed, want some", len(db.sums))
	}
	db.calls = -1
	if err := d.Task(db).Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	for i := range owners {
		if n := db.sums["getPet "+fmt.Sprint(i)]; n != 3 {
			t.Fatalf("owner %d has %d uses stored, want each of the 3 once", i, n)
		}
	}
}

// A database that was away at midnight does not move requests to the next day.
func TestDeprecatedUseKeepsItsDay(t *testing.T) {
	now := midnight.Add(24*time.Hour - 1)
	d := store.NewDeprecatedCounter(func() time.Time { return now })
	db, err := sqlite.Open(t.Context(), filepath.Join(t.TempDir(), "pets.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	d.Count("getPet", "ada")
	d.Count("getPet", "ada")
	now = now.Add(1)
	d.Count("getPet", "ada")
	if err := d.Task(db).Save(t.Context()); err != nil {
		t.Fatal(err)
	}
	for since, want := range map[time.Time]int64{midnight: 3, now: 1} {
		uses, err := db.ListDeprecatedUse(t.Context(), since)
		if err != nil || len(uses) != 1 || uses[0].Count != 3 || uses[0].Recent != want {
			t.Errorf("uses since %v are %+v (%v), want 3, %d of them recent", since, uses, err, want)
		}
	}
}
