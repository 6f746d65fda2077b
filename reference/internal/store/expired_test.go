package store_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestWhatHasExpiredIsRemoved(t *testing.T) {
	db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
	now := noon
	l, _, err := store.LoadLimiter(t.Context(), db, memory.Options{Now: func() time.Time { return now }, MaxSubjects: 1000})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 100 {
		take(t, l, fmt.Sprint("old ", i), 1)
	}
	save(t, l, db)
	if _, all := records(t, db); len(all) != 100 {
		t.Fatalf("%d subjects are stored, want 100", len(all))
	}
	now = now.Add(48 * time.Hour)
	for range 80 {
		for i := range 500 {
			take(t, l, fmt.Sprint("new ", i), 1)
		}
		save(t, l, db)
	}
	_, all := records(t, db)
	if len(all) != 500 {
		t.Errorf("%d subjects are stored two days later, want the 500 new ones", len(all))
	}
	for _, r := range all {
		if r.Expires < now.Unix() {
			t.Fatalf("%016x, which has expired, is still stored", r.Key)
		}
	}
}

// What the clock says while it is wrong must not remove usage from the file that the
// engine still has.
func TestAClockThatWasAheadRemovesNothing(t *testing.T) {
	db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
	now := noon
	l, _, err := store.LoadLimiter(t.Context(), db, memory.Options{Now: func() time.Time { return now }})
	if err != nil {
		t.Fatal(err)
	}
	take(t, l, "owner:ada", 30)
	if err := l.Ban(t.Context(), "owner:eve", time.Hour); err != nil {
		t.Fatal(err)
	}
	save(t, l, db)
	now = noon.Add(48 * time.Hour)
	// So much that every part of the file is written again.
	header, _ := records(t, db)
	if err := db.SaveUsage(t.Context(), header, []memory.Record{{Key: 2, Data: make([]byte, 2<<20), Expires: 1}}); err != nil {
		t.Fatal(err)
	}
	for range 8 {
		save(t, l, db)
	}
	if _, all := records(t, db); len(all) != 2 {
		t.Errorf("%d records are stored, want the two of the engine", len(all))
	}
	now = noon.Add(time.Minute)
	restored := load(t, db, now)
	if got := remaining(t, restored, "owner:ada"); got != 70 {
		t.Errorf("ada has %d remaining, want 70", got)
	}
	if bans, err := restored.Bans(t.Context()); err != nil || len(bans) != 1 {
		t.Errorf("bans are %v, %v, want that of eve", bans, err)
	}
}
