package store_test

import (
	"context"
	"errors"
	"iter"
	"maps"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var plan = ratelimit.MustPlan("test", ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour},
	ratelimit.PerDay(100))

var noon = time.Date(2026, time.November, 20, 12, 0, 0, 0, time.UTC)

func at(t time.Time) func() time.Time { return func() time.Time { return t } }

func openUsage(t *testing.T, path string) *sqlite.Usage {
	t.Helper()
	db, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
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
		if _, err := l.Take(t.Context(), subject, plan, 1); err != nil {
			t.Fatal(err)
		}
	}
}

func save(t *testing.T, l *memory.Limiter, db store.Usage) {
	t.Helper()
	if err := store.LimiterTask(l, db).Save(t.Context()); err != nil {
		t.Fatalf("saving = %v", err)
	}
}

func remaining(t *testing.T, l *memory.Limiter, subject string) int64 {
	t.Helper()
	d, err := l.Peek(t.Context(), subject, plan)
	if err != nil {
		t.Fatal(err)
	}
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
	if err := first.Ban(t.Context(), "owner:eve", time.Hour); err != nil {
		t.Fatal(err)
	}
	save(t, first, db)
	take(t, first, "owner:ada", 1) // not saved
	if err := db.Close(); err != nil {
		t.Fatal(err)
	}

	second := load(t, openUsage(t, path), noon)
	for subject, want := range map[string]int64{"owner:ada": 65, "owner:bob": 99, "owner:carl": 100, "owner:eve": 0} {
		if got := remaining(t, second, subject); got != want {
			t.Errorf("%s has %d remaining after the restart, want %d", subject, got, want)
		}
	}
	bans, err := second.Bans(t.Context())
	want := []ratelimit.Ban{{Subject: "owner:eve", Ends: noon.Add(time.Hour)}}
	if diff := cmp.Diff(want, bans, cmp.Comparer(time.Time.Equal)); err != nil || diff != "" {
		t.Errorf("bans after the restart (-want +got):\n%s%v", diff, err)
	}
}

func TestABanEndedRightAfterARestartStaysEnded(t *testing.T) {
	db := openUsage(t, filepath.Join(t.TempDir(), "usage"))
	first := load(t, db, noon)
	if err := first.Ban(t.Context(), "owner:eve", time.Hour); err != nil {
		t.Fatal(err)
	}
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
	db := &counted{Usage: openUsage(t, filepath.Join(t.TempDir(), "usage"))}
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

// counted counts the records that are saved.
type counted struct {
	store.Usage
	records int
}

func (c *counted) SaveUsage(ctx context.Context, header []byte, records []memory.Record) error {
	c.records += len(records)
	return c.Usage.SaveUsage(ctx, header, records)
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
	if err != nil {
		t.Fatal(err)
	}
	return header, all
}

// failing is a database that fails while it is told to.
type failing struct {
	store.Usage
	err error
}

func (f *failing) SaveUsage(ctx context.Context, header []byte, records []memory.Record) error {
	if f.err != nil {
		return f.err
	}
	return f.Usage.SaveUsage(ctx, header, records)
}

func TestAFailedSaveIsMadeUpFor(t *testing.T) {
	db := &failing{Usage: openUsage(t, filepath.Join(t.TempDir(), "usage")), err: errors.New("disk full")}
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
