package store_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

var plan = ratelimit.MustPlan("test", ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour},
	ratelimit.PerDay(100))

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func openUsage(t *testing.T, path string) *sqlite.Usage {
	t.Helper()
	db, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
	must(t, err)
	t.Cleanup(func() { db.Close() })
	return db
}

func load(t *testing.T, db store.Usage, now time.Time) *memory.Limiter {
	t.Helper()
	l, damaged, err := store.LoadLimiter(t.Context(), db, memory.Options{Now: at(now)})
	if err != nil || damaged != 0 {
		t.Fatalf("Load = %d damaged, %v, want none", damaged, err)
	}
	return l
}

func take(t *testing.T, l *memory.Limiter, subject string, n int) {
	t.Helper()
	for range n {
		_, err := l.Take(t.Context(), subject, plan, 1)
		must(t, err)
	}
}

func save(t *testing.T, l *memory.Limiter, db store.Usage) {
	t.Helper()
	must(t, store.LimiterTask(l, db).Save(t.Context()))
}

func remaining(t *testing.T, l *memory.Limiter, subject string) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), subject, plan)
	must(t, err)
	return d.Remaining()
}

func TestUsageAndBansSurviveARestart(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage")
	db := openUsage(t, path)
	first := load(t, db, noon)
	take(t, first, "owner:ada", 30)
	save(t, first, db)
	take(t, first, "owner:ada", 5)
	take(t, first, "owner:bob", 1)
	must(t, first.Ban(t.Context(), "owner:eve", time.Hour, "a lost laptop"))
	save(t, first, db)
	take(t, first, "owner:ada", 1) // not saved
	must(t, db.Close())

	second := load(t, openUsage(t, path), noon)
	for subject, want := range map[string]int64{"owner:ada": 65, "owner:bob": 99, "owner:carl": 100, "owner:eve": 0} {
		if got := remaining(t, second, subject); got != want {
			t.Errorf("%s has %d remaining after the restart, want %d", subject, got, want)
		}
	}
	bans, err := second.Bans(t.Context())
	want := []ratelimit.Ban{{Subject: "owner:eve", Ends: noon.Add(time.Hour), Reason: "a lost laptop"}}
	if diff := cmp.Diff(want, bans, cmp.Comparer(time.Time.Equal)); err != nil || diff != "" {
		t.Errorf("bans after the restart (-want +got):\n%s%v", diff, err)
	}
}

func TestABanEndedRightAfterARestartStaysEnded(t *testing.T) {
	db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
	first := load(t, db, noon)
	must(t, first.Ban(t.Context(), "owner:eve", time.Hour, "a lost laptop"))
	save(t, first, db)
	second := load(t, db, noon)
	if was, err := second.Unban(t.Context(), "owner:eve"); err != nil || !was {
		t.Fatalf("Unban = %v, %v, want true", was, err)
	}
	save(t, second, db)
	third := load(t, db, noon)
	if bans, err := third.Bans(t.Context()); err != nil || len(bans) != 0 {
		t.Errorf("bans after the next restart = %v, %v, want none", bans, err)
	}
}

func TestNothingIsSavedAgainAfterARestart(t *testing.T) {
	db := &watched{Usage: openUsage(t, filepath.Join(t.TempDir(), "usage"))}
	first := load(t, db, noon)
	take(t, first, "owner:ada", 1)
	take(t, first, "owner:bob", 1)
	save(t, first, db)
	second := load(t, db, noon)
	db.records = 0
	take(t, second, "owner:ada", 1)
	save(t, second, db)
	if db.records != 1 {
		t.Errorf("%d records were saved after one subject changed, want 1", db.records)
	}
}

// watched is a database that counts the records that are saved, and fails while there is
// an error.
type watched struct {
	store.Usage
	records int
	err     error
}

func (w *watched) SaveUsage(ctx context.Context, header []byte, records []memory.Record) error {
	if w.err != nil {
		return w.err
	}
	w.records += len(records)
	return w.Usage.SaveUsage(ctx, header, records)
}

// records returns what is stored, each key once.
func records(t *testing.T, db store.Usage) (header []byte, all []memory.Record) {
	t.Helper()
	err := db.LoadUsage(t.Context(), func(h []byte, portions iter.Seq[[]memory.Record]) error {
		latest := map[uint64]memory.Record{}
		for _, r := range slices.Concat(slices.Collect(portions)...) {
			if latest[r.Key] = r; len(r.Data) == 0 {
				delete(latest, r.Key)
			}
		}
		header, all = h, slices.Collect(maps.Values(latest))
		return nil
	})
	must(t, err)
	return header, all
}

func TestAFailedSaveIsMadeUpFor(t *testing.T) {
	db := &watched{Usage: openUsage(t, filepath.Join(t.TempDir(), "usage")), err: errors.New("disk full")}
	l := load(t, db, noon)
	take(t, l, "owner:ada", 10)
	task := store.LimiterTask(l, db)
	if err := task.Save(t.Context()); !errors.Is(err, db.err) {
		t.Errorf("saving to a full disk = %v, want its error", err)
	}
	take(t, l, "owner:bob", 10)
	db.err = nil
	if err := task.Save(t.Context()); err != nil {
		t.Errorf("saving when there is room = %v", err)
	}
	restored := load(t, db, noon)
	if a, b := remaining(t, restored, "owner:ada"), remaining(t, restored, "owner:bob"); a != 90 || b != 90 {
		t.Errorf("ada has %d and bob %d remaining, want 90 each", a, b)
	}
}

func TestADamagedRecordIsLeftOut(t *testing.T) {
	db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
	l := load(t, db, noon)
	for _, subject := range []string{"a", "b", "c", "d", "e"} {
		take(t, l, subject, 10)
	}
	save(t, l, db)
	header, all := records(t, db)
	for i := range all[1:3] {
		all[1+i].Data = []byte{0xff}
	}
	db = openUsage(t, filepath.Join(t.TempDir(), "usage"))
	must(t, db.SaveUsage(t.Context(), header, all))

	restored, damaged, err := store.LoadLimiter(t.Context(), db, memory.Options{Now: at(noon)})
	if err != nil || damaged != 2 {
		t.Fatalf("Load = %d damaged, %v, want 2 and no error", damaged, err)
	}
	kept := 0
	for _, subject := range []string{"a", "b", "c", "d", "e"} {
		if remaining(t, restored, subject) == 90 {
			kept++
		}
	}
	if kept != 3 {
		t.Errorf("%d subjects kept their usage, want the 3 whose records are sound", kept)
	}
}

// What a file has of a save is cut off, as no SQLite has written it.
func TestADamagedSaveIsLeftOut(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage")
	db := openUsage(t, path)
	l := load(t, db, noon)
	for i := range 100 {
		take(t, l, fmt.Sprint(i), 10)
	}
	save(t, l, db)
	header, all := records(t, db)
	db = openUsage(t, path+"2")
	for i := range 2 {
		must(t, db.SaveUsage(t.Context(), header, all[i*50:][:50]))
	}
	must(t, db.Close())
	file, err := sql.Open("sqlite", path+"2")
	must(t, err)
	defer file.Close()
	if _, err := file.ExecContext(t.Context(), "UPDATE changes SET data = substr(data, 1, length(data) - 1) WHERE number = 1"); err != nil {
		t.Fatal(err)
	}
	file.Close()
	restored, damaged, err := store.LoadLimiter(t.Context(), openUsage(t, path+"2"), memory.Options{Now: at(noon)})
	if err != nil || damaged != 1 || restored.Stats().Subjects != 99 {
		t.Errorf("Load = %d damaged, %v, want 1 damaged and the other 99 loaded", damaged, err)
	}
}

func TestStateThatCannotBeRead(t *testing.T) {
	for _, tt := range []struct {
		name    string
		header  []byte
		damaged bool
	}{
		{"from a newer version", append([]byte{2}, make([]byte, 16)...), false},
		{"overwritten", make([]byte, 17), true},
		{"cut off", []byte{1}, true},
		{"with half a secret", []byte{1, 2, 3}, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
			must(t, db.SaveUsage(t.Context(), tt.header, nil))
			_, _, err := store.LoadLimiter(t.Context(), db, memory.Options{})
			switch {
			case errors.Is(err, store.ErrDamaged) != tt.damaged:
				t.Errorf("Load = %v, want that it is damaged: %v", err, tt.damaged)
			case !tt.damaged && (err == nil || !strings.Contains(err.Error(), "delete the usage file")):
				t.Errorf("Load = %v, want an error that says what to do", err)
			}
		})
	}
}

func TestWhatHasExpiredIsRemoved(t *testing.T) {
	db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
	now := noon
	l, _, err := store.LoadLimiter(t.Context(), db, memory.Options{Now: func() time.Time { return now }, MaxSubjects: 1000})
	must(t, err)
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
	must(t, err)
	take(t, l, "owner:ada", 30)
	must(t, l.Ban(t.Context(), "owner:eve", time.Hour, "a lost laptop"))
	save(t, l, db)
	now = noon.Add(48 * time.Hour)
	// So much that every part of the file is written again.
	header, _ := records(t, db)
	must(t, db.SaveUsage(t.Context(), header, []memory.Record{{Key: 2, Data: make([]byte, 2<<20), Expires: 1}}))
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
