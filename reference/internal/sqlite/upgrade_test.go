package sqlite_test

import (
	"context"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// addToys is a migration of a later version of the program.
const addToys = "CREATE TABLE toys (id INTEGER PRIMARY KEY)"

func copies(t *testing.T, path string) []string {
	t.Helper()
	// Also those that are not complete.
	found, err := filepath.Glob(path + ".v*")
	must(t, err)
	return found
}

// checkCopy checks that the older version of the program could use the copy of an upgrade.
func checkCopy(t *testing.T, u sqlite.Upgrade) {
	t.Helper()
	checkMode(t, u.Copy)
	if r := checkSound(t, u.Copy); r.Schema != u.From || r.Pets != 1 {
		t.Errorf("the copy is = %+v, want a pet and schema %d", r, u.From)
	}
}

func TestMigrate(t *testing.T) {
	older, _ := filled(t)
	sqlite.AddMigrations(t, addToys, "CREATE INDEX toys_by_id ON toys (id)")
	const latest = sqlite.Version + 2
	var upgrades []sqlite.Upgrade
	o := sqlite.Options{NoMigrate: true, OnUpgrade: func(u sqlite.Upgrade) { upgrades = append(upgrades, u) }}
	before := readFile(t, older)
	_, err := sqlite.Open(t.Context(), older, o)
	want := fmt.Sprintf("it has schema %d, this version needs %d, and migrate is manual; run petstore migrate", sqlite.Version, latest)
	if err == nil || !strings.HasSuffix(err.Error(), want) || !cmp.Equal(before, readFile(t, older)) {
		t.Errorf("Open of an older schema = %v, want %q and that the file is not changed", err, want)
	}
	for _, tt := range []struct {
		path string
		from int64
	}{
		{tempDatabase(t), 0}, // there is no file
		{older, sqlite.Version},
		{older, latest}, // there is nothing to do
	} {
		if from, to, err := sqlite.Migrate(t.Context(), tt.path, o); from != tt.from || to != latest || err != nil {
			t.Errorf("Migrate = %d, %d, %v, want from %d to %d", from, to, err, tt.from, latest)
		}
	}
	open(t, older, o)
	if len(upgrades) != 1 || len(copies(t, older)) != 1 {
		t.Fatalf("upgrades are %v and copies %v, want one", upgrades, copies(t, older))
	}
	if diff := cmp.Diff(sqlite.Upgrade{Database: older, From: sqlite.Version, To: latest, Copy: copies(t, older)[0]}, upgrades[0]); diff != "" {
		t.Errorf("the upgrade (-want +got):\n%s", diff)
	}
	checkCopy(t, upgrades[0])
	if r := checkSound(t, older); r.Schema != latest || r.Pets != 1 {
		t.Errorf("after the upgrade it is %+v, want a pet", r)
	}
}

// An upgrade that cannot be done is tried at each start, and must not leave a copy of
// the file each time.
func TestAnUpgradeThatChangesNothingLeavesNoCopy(t *testing.T) {
	path, _ := filled(t)
	sqlite.AddMigrations(t, addToys, "CREATE TABLE pets (id INTEGER)")
	for range 3 {
		if s, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil {
			s.Close()
			t.Fatal("Open made a table that there is already")
		}
	}
	if got := copies(t, path); len(got) != 1 { // of the file before the first step, which was done
		t.Errorf("copies are %v, want one", got)
	}
}

func TestHandlesUpgradeTogether(t *testing.T) {
	path, _ := filled(t)
	sqlite.AddMigrations(t, addToys, "CREATE INDEX toys_by_id ON toys (id)")
	var mu sync.Mutex
	var upgrades []sqlite.Upgrade
	o := sqlite.Options{OnUpgrade: func(u sqlite.Upgrade) {
		mu.Lock()
		defer mu.Unlock()
		upgrades = append(upgrades, u)
	}}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := sqlite.Open(context.Background(), path, o)
			if err != nil {
				t.Errorf("Open = %v", err)
				return
			}
			if err := s.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
	wg.Wait()
	if got := copies(t, path); len(upgrades) == 0 || len(got) != len(upgrades) {
		t.Errorf("copies are %v, want the %d that were reported", got, len(upgrades))
	}
	for _, u := range upgrades {
		checkCopy(t, u) // its schema may be newer, if another handle was between two steps
	}
}
