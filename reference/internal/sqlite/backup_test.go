package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func backup(t *testing.T, path string) string {
	t.Helper()
	to := filepath.Join(t.TempDir(), "backup.db")
	_, err := sqlite.Backup(t.Context(), path, to, sqlite.Options{})
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
		{"an empty database", empty, filepath.Join(dir, "y"), nil, "is empty"},
		{"a database without one of its tables", partial, filepath.Join(dir, "y"), nil, "its schema is not that of this program: table daily_use"},
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

// Only a file that is whole and has this program's schema is copied, and so can be restored.
func TestBackupFindsDamage(t *testing.T) {
	sqlText := func(texts ...string) func(*testing.T, string) {
		return func(t *testing.T, path string) {
			db := raw(t, path)
			execute(t, db, texts...)
			db.Close()
		}
	}
	content := func(change func([]byte) []byte) func(*testing.T, string) {
		return func(t *testing.T, path string) { writeFile(t, path, change(readFile(t, path))) }
	}
	overwrite := func(from, n int) func(*testing.T, string) {
		return content(func(b []byte) []byte { return slices.Replace(b, from, from+n, bytes.Repeat([]byte{0xff}, n)...) })
	}
	for _, tt := range []struct {
		name string
		harm func(t *testing.T, path string)
		want string
	}{
		{"a status that does not exist", sqlText(`PRAGMA ignore_check_constraints = 1`, `UPDATE pets SET status = 'lost'`), "CHECK constraint failed in pets"},
		{"an idempotency key without its pet", sqlText(`UPDATE pets SET id = 9`), "a row of idempotency_keys refers to a row of pets that does not exist"},
		{"a missing table", sqlText(`DROP TABLE daily_use`), "its schema is not that of this program: table daily_use"},
		{"a missing column", sqlText(`ALTER TABLE pets RENAME COLUMN name TO title`), "index pets_by_status"},
		{"a missing index, and a table", sqlText(`DROP INDEX pets_by_status`, `CREATE TABLE spy (id)`), "index pets_by_status"},
		{"a trigger with the name of a table", sqlText(`CREATE TRIGGER goose_db_version AFTER INSERT ON keys BEGIN SELECT 1; END`), "trigger goose_db_version"},
		{"a view", sqlText(`CREATE VIEW spy AS SELECT digest FROM keys`), "view spy"},
		{"an index", sqlText(`CREATE UNIQUE INDEX spy ON pets (name)`), "index spy"},
		{"overwritten in the middle", overwrite(4096, 8192), "is damaged"},
		{"cut off", content(func(b []byte) []byte { return b[:5*4096] }), "is damaged"},
		{"overwritten header", overwrite(0, 100), "is not a SQLite database"},
		{"overwritten schema", overwrite(100, 1000), "is damaged"},
		{"a newer version", sqlText("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)"), "a newer version of this program wrote it (schema 99, "},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, _ := filled(t)
			tt.harm(t, path)
			to := filepath.Join(t.TempDir(), "backup.db")
			if r, err := sqlite.Backup(t.Context(), path, to, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("Backup = %+v, %v, want %q", r, err, tt.want)
			}
			checkLeft(t, to)
		})
	}
}

// Progress names each part of the work, and ends at the whole of it.
func TestProgress(t *testing.T) {
	path, saved := tempDatabase(t), filepath.Join(t.TempDir(), "saved.db")
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Rex") })
	db := raw(t, path)
	execute(t, db, manyPets)
	db.Close()
	var mu sync.Mutex
	var doing []string
	last := map[string][2]int64{}
	o := sqlite.Options{Progress: func(what string, done, total int64) {
		mu.Lock()
		defer mu.Unlock()
		if before, known := last[what]; !known {
			doing = append(doing, what)
		} else if done < before[0] || done > total && total > 0 || what != "copying" && total != before[1] {
			t.Errorf("%s: %d of %d after %v", what, done, total, before)
		}
		last[what] = [2]int64{done, total}
	}}
	_, err := sqlite.Backup(t.Context(), path, saved, o)
	must(t, err)
	_, err = sqlite.Restore(t.Context(), saved, path, operator, later, o)
	must(t, err)
	must(t, sqlite.Export(t.Context(), path, o, func(x store.Export) error {
		for _, table := range x.Tables {
			for _, err := range table.Rows {
				must(t, err)
			}
		}
		return nil
	}))
	doing = slices.DeleteFunc(doing, func(what string) bool { return what == "copying" }) // if it takes long enough
	if got, want := strings.Join(doing, ", "), "checking, restoring, importing"; got != want || last["importing"][1] != 2002 {
		t.Errorf("the parts are %s, and %v, want %s", got, last, want)
	}
}

// export returns the names of the pets of an export, and checks that no copy is left.
func export(t *testing.T, path string) (names []string, err error) {
	t.Helper()
	temp := t.TempDir()
	t.Setenv("TMPDIR", temp)
	err = sqlite.Export(t.Context(), path, sqlite.Options{BusyTimeout: 20 * time.Millisecond}, func(x store.Export) error {
		for _, table := range x.Tables {
			for row, err := range table.Rows { // keys have a column that older versions lack
				if err != nil {
					return err
				}
				if table.Name == "pets" {
					names = append(names, row[1].(string))
				}
			}
		}
		return nil
	})
	if left, globErr := filepath.Glob(filepath.Join(temp, "*")); len(left) > 0 || globErr != nil {
		t.Errorf("Export has left %v (%v)", left, globErr)
	}
	return names, err
}

func TestExportRefuses(t *testing.T) {
	for _, tt := range []struct {
		name    string
		harm    []string
		content func([]byte) []byte
		want    string
	}{
		{name: "a letter", content: func([]byte) []byte { return bytes.Repeat([]byte("Dear Ada, "), 1000) }, want: "is not a SQLite database"},
		{name: "half a file", content: func(b []byte) []byte { return b[:len(b)/2] }, want: "is damaged"},
		{name: "an empty file", content: func([]byte) []byte { return nil }, want: "is empty"},
		{name: "a newer version", harm: []string{`INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)`},
			want: "a newer version of this program wrote it (schema 99, this version knows"},
		{name: "another program", harm: []string{`PRAGMA application_id = 7`}, want: "it belongs to another program"},
		{name: "a missing table", harm: []string{`DROP TABLE daily_use`}, want: "its schema is not that of this program: table daily_use"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, _ := filled(t)
			if tt.harm != nil {
				db := raw(t, path)
				execute(t, db, tt.harm...)
				db.Close()
			}
			if tt.content != nil {
				writeFile(t, path, tt.content(readFile(t, path)))
			}
			before := readFile(t, path)
			names, err := export(t, path)
			if err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) || len(names) > 0 {
				t.Errorf("Export = %v, %v, want an error with %q and %s", names, err, tt.want, path)
			}
			if !bytes.Equal(before, readFile(t, path)) {
				t.Error("Export changed the file")
			}
		})
	}
	if _, err := export(t, filepath.Join(t.TempDir(), "none.db")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Export of a file that does not exist = %v, want ErrNotExist", err)
	}
}

// A server that still runs could add pets that are not exported.
func TestExportOfAFileInUse(t *testing.T) {
	path, _ := filled(t)
	s := open(t, path, sqlite.Options{})
	if _, err := export(t, path); !errors.Is(err, sqlite.ErrInUse) || !strings.Contains(err.Error(), "stop it first") {
		t.Errorf("Export = %v, want ErrInUse", err)
	}
	addPet(t, s, "Tom")
	must(t, s.Close())
	if names, err := export(t, path); err != nil || len(names) != 2 {
		t.Errorf("Export = %v, %v, want two pets", names, err)
	}
}

func TestExportOfAnOlderVersion(t *testing.T) {
	path, _ := filled(t)
	sqlite.AddMigrations(t, addToys)
	before := readFile(t, path)
	if names, err := export(t, path); err != nil || len(names) != 1 {
		t.Errorf("Export = %v, %v, want a pet", names, err)
	}
	if !bytes.Equal(before, readFile(t, path)) {
		t.Error("Export upgraded the file, not a copy of it")
	}
}

// What a killed server has written is in a log beside the file.
func TestExportAfterAKill(t *testing.T) {
	path := tempDatabase(t)
	acknowledged := len(killAfter(t, program(t, "create pets without end", path), 100))
	if names, err := export(t, path); err != nil || len(names) < acknowledged {
		t.Errorf("Export = %d pets, %v, want at least %d pets", len(names), err, acknowledged)
	}
}

// A backup may be where nobody can write.
func TestExportOfAReadOnlyBackup(t *testing.T) {
	path, _ := filled(t)
	saved := backup(t, path)
	must(t, os.Chmod(saved, 0o400))
	before := readFile(t, saved)
	if names, err := export(t, saved); err != nil || len(names) != 1 || !bytes.Equal(before, readFile(t, saved)) {
		t.Errorf("Export = %v, %v, want a pet and the file as it was", names, err)
	}
}
