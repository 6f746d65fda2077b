package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func backup(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup.db")
	_, err := sqlite.Backup(t.Context(), path, to)
	must(t, err)
	return to
}

// A backup is of one instant after it was asked for, although pets are written all the
// time.
func TestBackupWhileServersWrite(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	var last atomic.Int64 // pet that was acknowledged
	var wg sync.WaitGroup
	wg.Go(func() {
		for ctx.Err() == nil {
			pet, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
			if err != nil {
				t.Errorf("CreatePet during a backup = %v", err)
				return
			}
			last.Store(pet.ID)
		}
	})
	wg.Go(func() { runTogether(t, path, "create 25 pets", "create 25 pets") })
	for range 5 {
		before := last.Load()
		to := backup(t, path)
		copied := open(t, to, sqlite.Options{})
		id, q := int64(0), store.ListQuery{Limit: store.MaxList}
		for more := true; more; {
			var pets []store.Pet
			var err error
			pets, more, err = copied.ListPets(t.Context(), q)
			must(t, err)
			for _, p := range pets {
				if id++; p.ID != id {
					t.Fatalf("in the backup, pet %d follows pet %d", p.ID, id-1)
				}
				q.After = p.ID
			}
		}
		if id < before {
			t.Errorf("the backup ends with pet %d, want at least %d, which was acknowledged before", id, before)
		}
		checkIntegrity(t, to)
	}
	stop()
	wg.Wait()
}

func TestBackupIsOneFileForItsOwner(t *testing.T) {
	path, key := filled(t)
	to := backup(t, path)
	checkLeft(t, to, filepath.Base(to))
	checkMode(t, to)
	var mode string
	if err := raw(t, to).QueryRow("PRAGMA journal_mode").Scan(&mode); err != nil || mode != "delete" {
		t.Errorf("the journal mode of the backup is %s (%v), want delete: it is one file also while it is read", mode, err)
	}
	s := open(t, to, sqlite.Options{})
	if got, err := s.KeyByDigest(t.Context(), key.Digest); err != nil || got.ID != key.ID {
		t.Errorf("the key in the backup is %+v (%v), want %+v", got, err, key)
	}
	pet, replayed, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: "Rex"}, once("k"))
	if err != nil || !replayed || pet.ID != 1 {
		t.Errorf("a request again in the backup gives %+v, replayed %v (%v), want the first pet", pet, replayed, err)
	}
}

// export returns the names of the pets of an export.
func export(t *testing.T, path string) (names []string, err error) {
	t.Helper()
	sqlite.ShortenBusyTimeout(t)
	err = sqlite.Export(t.Context(), path, func(x store.Export) error {
		for _, table := range x.Tables {
			for row, err := range table.Rows {
				if err != nil {
					return err
				}
				if table.Name == "pets" {
					names = append(names, row[1].(string))
				}
			}
		}
		if _, err := sqlite.Open(t.Context(), path, sqlite.Options{}); err == nil {
			t.Error("a server can open the database during an export")
		}
		return nil
	})
	return names, err
}

// An export has what a killed server has written, which is in a log beside the file, and that of
// a backup that nobody can write, without a change of the file.
func TestExport(t *testing.T) {
	killed := tempDatabase(t)
	acknowledged := 0
	for _, line := range killAfter(t, program(t, "change without end", killed), 200) {
		if strings.HasPrefix(line, "pet ") {
			acknowledged++
		}
	}
	if names, err := export(t, killed); err != nil || len(names) < acknowledged {
		t.Errorf("Export after a kill = %d pets, %v, want at least %d pets", len(names), err, acknowledged)
	}
	path, _ := filled(t)
	saved := backup(t, path)
	must(t, os.Chmod(saved, 0o400))
	for _, path := range []string{path, saved} {
		before := readFile(t, path)
		if names, err := export(t, path); err != nil || len(names) != 1 || !bytes.Equal(before, readFile(t, path)) {
			t.Errorf("Export = %v, %v, want a pet and the file as it was", names, err)
		}
		checkLeft(t, path, filepath.Base(path))
	}
	sqlite.AddMigrations(t, addToys)
	if _, err := export(t, path); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("has schema %d, this version needs %d; run petstore migrate", sqlite.Version, sqlite.Version+1)) {
		t.Errorf("Export of an older version = %v, want what to do", err)
	}
}
