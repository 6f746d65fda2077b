//go:build unix

package main_test

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// Each replica is restarted under load. No request fails, no pet, no use and no count is
// lost, and no quota is exceeded.
func TestRollingRestart(t *testing.T) {
	testenv.Long(t, "restarts every server in turn")
	onEachDatabase(t, func(t *testing.T, database string) {
		f := newFleet(t, 3, database, "")
		reader := f.roomyKey(t, "reader")
		f.undisturbed(t, func(owner string) func() {
			before := len(petIDs(t, f.replicas[0], reader))
			limited := f.key(t, "limited "+owner, "60/8784h")
			load := startTraffic(t, f.balancer.url, f.roomyKey(t, owner), 4)
			few := &crowd{call: call{key: limited}, charged: 200}
			for i := range f.replicas {
				few.run(t, f.balancer.url, 3, 8)
				load.flows(t, 50)
				f.restart(t, i)
			}
			few.run(t, f.balancer.url, 3, 8)
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
				load.checkFleet(t, f, reader, before)
				f.checkUsed(t, load.key, load.admitted)
				f.stopAll(t)
				checkCounts(t, f, owner, load)
			}
		})
	})
}

// checkCounts fails unless the database has each request of an owner, after all replicas
// have ended.
func checkCounts(t *testing.T, f *fleet, owner string, load *traffic) {
	t.Helper()
	db := f.openStore(t)
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

// buildTomorrow builds the program as it may be after the next release: with one more
// migration in a file.
func buildTomorrow(t *testing.T, file, migration string) (path string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("skipped: it builds a program: %v", err)
	}
	next, err := filepath.Abs(file)
	must(t, err)
	dir := t.TempDir()
	writeFile(t, dir, "tomorrow.sql", "-- +goose Up\n"+migration)
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{next: filepath.Join(dir, "tomorrow.sql")}})
	must(t, err)
	writeFile(t, dir, "overlay.json", string(overlay))
	path = filepath.Join(dir, "petstore")
	cmd := exec.CommandContext(t.Context(), "go", "build", "-buildvcs=false", "-overlay", filepath.Join(dir, "overlay.json"), "-o", path, ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	return path
}

// Replicas of two versions serve side by side while they are replaced one after the other.
// The first new one upgrades the schema, and an older one can still be started then.
func TestTwoVersionsSideBySide(t *testing.T) {
	testenv.Long(t, "runs two versions beside each other")
	t.Parallel()
	url := postgrestest.Database(t)
	f := newFleet(t, 3, url, "")
	reader := f.roomyKey(t, "reader")
	tomorrow := buildTomorrow(t, "internal/postgres/migrations/00002_tomorrow.sql", "ALTER TABLE pets ADD COLUMN chip text NOT NULL DEFAULT '';")
	load := startTraffic(t, f.balancer.url, f.roomyKey(t, "ann"), 4)
	load.flows(t, 50)
	f.program = tomorrow
	f.restart(t, 0)
	if lines := f.replicas[0].logged("upgrading the database"); len(lines) != 1 {
		t.Errorf("the log of the new version says %d times that it upgrades the database, want once", len(lines))
	}
	load.flows(t, 50)
	f.program = ""
	f.restart(t, 1) // the old version again, as after a change of the settings
	load.flows(t, 50)
	f.program = tomorrow
	f.restart(t, 1)
	load.flows(t, 50)
	load.stop()

	for _, failed := range load.failed {
		t.Errorf("%s %s failed: %s", failed.method, failed.path, failed.text)
	}
	load.checkFleet(t, f, reader, 0)
	f.checkUsedIfExact(t, load.key, load.admitted)
	t.Logf("%d requests, %d pets", load.admitted, len(load.pets))
	f.stopAll(t)
	checkCounts(t, f, "ann", load)
}
