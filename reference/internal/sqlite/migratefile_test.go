package sqlite

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestMigrateFromEveryVersion(t *testing.T) {
	latest := int64(len(content))
	for version := range latest + 1 {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pets.db")
			migrateTo(t, path, mainSchema, version)
			for _, want := range []int64{version, latest} { // the second time there is nothing to do
				from, to, err := Migrate(t.Context(), path, Options{NoMigrate: true})
				if from != want || to != latest || err != nil {
					t.Errorf("Migrate = %d, %d, %v, want from %d to %d", from, to, err, want, latest)
				}
			}
			s, err := Open(t.Context(), path, Options{NoMigrate: true})
			if err != nil {
				t.Fatalf("Open after Migrate = %v", err)
			}
			defer s.Close()
			checkContent(t, s, version)
		})
	}
}

func TestMigrateCreatesAFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pets.db")
	if from, to, err := Migrate(t.Context(), path, Options{}); from != 0 || to != int64(len(content)) || err != nil {
		t.Errorf("Migrate of no file = %d, %d, %v, want from 0 to %d", from, to, err, len(content))
	}
}

// With NoMigrate, Open changes nothing.
func TestOpenWithoutMigration(t *testing.T) {
	latest := int64(len(content))
	for version := range latest {
		path := filepath.Join(t.TempDir(), "pets.db")
		migrateTo(t, path, mainSchema, version)
		_, err := Open(t.Context(), path, Options{NoMigrate: true})
		want := fmt.Sprintf("it has schema %d, this version needs %d, and migrate is manual; run petstore migrate", version, latest)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("Open of schema %d = %v, want %q", version, err, want)
		}
		if from, _, err := Migrate(t.Context(), path, Options{}); from != version || err != nil {
			t.Errorf("after Open of schema %d, it is %d, %v", version, from, err)
		}
	}
	path := filepath.Join(t.TempDir(), "pets.db")
	if _, err := Open(t.Context(), path, Options{NoMigrate: true}); err == nil || !strings.HasSuffix(err.Error(), "create it with petstore migrate") {
		t.Errorf("Open of no file = %v, want an error that says what to do", err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); len(files) > 0 || err != nil {
		t.Errorf("Open of no file left %v, %v", files, err)
	}
}
