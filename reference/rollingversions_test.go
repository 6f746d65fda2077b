//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
)

// buildTomorrow builds the program as it may be after the next release: with one more
// migration of PostgreSQL.
func buildTomorrow(t *testing.T, migration string) (path string) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skipf("skipped: it builds a program: %v", err)
	}
	folder, err := filepath.Abs("internal/postgres/migrations")
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	writeFile(t, dir, "tomorrow.sql", "-- +goose Up\n"+migration)
	next := filepath.Join(folder, fmt.Sprintf("%05d_tomorrow.sql", len(files)+1))
	overlay, err := json.Marshal(map[string]any{"Replace": map[string]string{next: filepath.Join(dir, "tomorrow.sql")}})
	if err != nil {
		t.Fatal(err)
	}
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
	tomorrow := buildTomorrow(t, "ALTER TABLE pets ADD COLUMN chip text NOT NULL DEFAULT '';")
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
	load.checkStored(t, f, reader, 0)
	f.checkUsedIfExact(t, load.key, load.admitted)
	t.Logf("%d requests, %d pets", load.admitted, len(load.pets))
	f.stopAll(t)
	checkCounts(t, f, "ann", load)
}

// A version that changes the schema so that older ones cannot work with it says so in the
// database. A replica of an older version is then not ready, and does not start.
func TestAVersionThatIsTooOld(t *testing.T) {
	t.Parallel()
	url := postgrestest.Database(t)
	f := newFleet(t, 1, url, "")
	postgrestest.Exec(t, url, "UPDATE petstore_schema SET oldest = 1000")
	eventually(t, "the replica is not ready", func() bool {
		a, err := ask(t.Context(), "GET", f.replicas[0].admin+"/readyz", "", "")
		return err == nil && a.status == 503 && strings.Contains(string(a.body), "newer version")
	})
	cmd := exec.Command("petstore", serveArgs([]string{"--config=petstore.yaml"})...)
	cmd.Dir, cmd.Env = f.dir, environment()
	p, err := launchCommand(cmd, t.TempDir())
	if err == nil {
		p.kill()
		t.Fatal("a version that is too old for the schema serves")
	}
	if !strings.Contains(err.Error(), "use the newer version") {
		t.Errorf("a version that is too old for the schema ends with %v, want what to do", err)
	}
}
