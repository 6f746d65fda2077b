//go:build unix

package main_test

import (
	"path/filepath"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// Each replica is restarted under load. No request fails, no pet, no use and no count is
// lost, and no quota is exceeded.
func TestRollingRestart(t *testing.T) {
	testenv.Long(t, "restarts every server in turn")
	t.Parallel()
	for name, open := range map[string]func(t testing.TB) string{
		"SQLite":     func(testing.TB) string { return filepath.Join(t.TempDir(), "petstore.db") },
		"PostgreSQL": postgrestest.Database,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testRollingRestart(t, newFleet(t, open(t), ""))
		})
	}
}

func testRollingRestart(t *testing.T, f *fleet) {
	t.Helper()
	reader := f.roomyKey(t, "reader")
	f.undisturbed(t, func(owner string) func() {
		before := len(petIDs(t, f.replicas[0], reader))
		limited := f.key(t, "limited "+owner, "60/8784h")
		load := startTraffic(t, f.roomyKey(t, owner), 4, f.replicas...)
		few := &crowd{key: limited}
		for i := range f.replicas {
			few.run(t, f.replicas, 3, 8)
			load.flows(t, 50)
			f.restart(t, i)
			load.send(f.replicas...)
		}
		few.run(t, f.replicas, 3, 8)
		load.flows(t, 50)
		load.stop()
		return func() {
			t.Helper()
			t.Logf("%d requests, %d pets, %d requests of the deprecated operation", load.admitted, len(load.pets), load.retired)
			for _, failed := range load.failed {
				t.Errorf("%s %s failed: %s", failed.method, failed.path, failed.text)
			}
			if few.admitted != 60 {
				t.Errorf("%d requests of the limited owner were admitted, want 60", few.admitted)
			}
			for i, p := range f.replicas {
				if stored := load.checkStored(t, p, reader); stored-before != len(load.pets) {
					t.Errorf("replica %d has %d pets, want %d: one for each that was acknowledged", i+1, stored-before, len(load.pets))
				}
			}
			f.checkUsed(t, load.key, load.admitted)
			f.stopAll(t)
			checkCounts(t, f, owner, load)
		}
	})
}

// checkCounts fails unless the database has each request of an owner, after all replicas
// have ended.
func checkCounts(t *testing.T, f *fleet, owner string, load *traffic) {
	t.Helper()
	db, err := database.Open(t.Context(), f.database, database.Options{})
	must(t, err)
	defer db.Close()
	days, err := db.ListDailyUse(t.Context(), owner, time.Time{})
	must(t, err)
	allowed := int64(0)
	for _, day := range days {
		allowed += day.Allowed
	}
	if allowed != load.admitted {
		t.Errorf("%d requests are counted by day, want %d", allowed, load.admitted)
	}
	uses, err := db.ListDeprecatedUse(t.Context(), time.Time{})
	must(t, err)
	retired := int64(0)
	for _, use := range uses {
		if use.Owner == owner {
			retired += use.Count
		}
	}
	if retired != load.retired {
		t.Errorf("%d requests of the deprecated operation are counted, want %d", retired, load.retired)
	}
}
