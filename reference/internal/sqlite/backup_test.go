package sqlite_test

import (
	"context"
	"errors"
	"io/fs"
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
	r, err := sqlite.Backup(t.Context(), path, to, sqlite.Options{})
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("Backup = %+v, %v", r, err)
	}
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
			if pets, more, err = copied.ListPets(t.Context(), q); err != nil {
				t.Fatal(err)
			}
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
	entries, err := os.ReadDir(filepath.Dir(to))
	if err != nil || len(entries) != 1 {
		t.Errorf("beside the backup are %v (%v), want nothing", entries, err)
	}
	if info, err := os.Stat(to); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the backup has mode %v (%v), want 0600", info.Mode(), err)
	}
	s := open(t, to, sqlite.Options{})
	if got, err := s.KeyByDigest(t.Context(), key.Digest); err != nil || got.ID != key.ID {
		t.Errorf("the key in the backup is %+v (%v), want %+v", got, err, key)
	}
	pet, replayed, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, new(once("k")), nil)
	if err != nil || !replayed || pet.ID != 1 {
		t.Errorf("a request again in the backup gives %+v, replayed %v (%v), want the first pet", pet, replayed, err)
	}
}

func TestBackupRefuses(t *testing.T) {
	path, _ := filled(t)
	taken := backup(t, path)
	before := string(readFile(t, taken))
	empty := filepath.Join(t.TempDir(), "empty.db")
	writeFile(t, empty, nil)
	partial, _ := filled(t)
	execute(t, raw(t, partial), "DROP TABLE daily_use")
	dir := t.TempDir()
	for _, tt := range []struct {
		name, path, to string
		is             error
		want           string
	}{
		{"a file that exists", path, taken, fs.ErrExist, taken},
		{"the database itself", path, path, fs.ErrExist, path},
		{"a directory that does not exist", path, filepath.Join(dir, "x", "y"), nil, "cannot write in the directory " + filepath.Join(dir, "x") + ": no such file"},
		{"no database", path + "x", filepath.Join(dir, "y"), fs.ErrNotExist, path + "x"},
		{"an empty database", empty, filepath.Join(dir, "y"), nil, "there is nothing to back up"},
		{"a database without one of its tables", partial, filepath.Join(dir, "y"), nil, "table daily_use is missing"},
	} {
		_, err := sqlite.Backup(t.Context(), tt.path, tt.to, sqlite.Options{})
		if err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: Backup = %v, want an error that wraps %v and says %q", tt.name, err, tt.is, tt.want)
		}
	}
	if string(readFile(t, taken)) != before {
		t.Error("a file that exists was overwritten")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Backup(ctx, path, filepath.Join(dir, "y"), sqlite.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Backup with a canceled context = %v, want context.Canceled", err)
	}
	if entries, err := os.ReadDir(dir); err != nil || len(entries) > 0 {
		t.Errorf("%v is left of backups that failed (%v)", entries, err)
	}
}
