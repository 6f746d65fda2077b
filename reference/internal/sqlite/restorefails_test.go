package sqlite_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestRestoreWhileTheDatabaseIsOpen(t *testing.T) {
	path, _ := filled(t)
	saved := backup(t, path)
	check := func(what string) {
		t.Helper()
		if err := refuseRestore(t, saved, path, path+" is in use by another process, such as a server; stop it first"); !errors.Is(err, sqlite.ErrInUse) {
			t.Errorf("Restore while %s = %v, want an error that wraps ErrInUse", what, err)
		}
	}
	s := open(t, path, sqlite.Options{})
	check("a store is open")
	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Tom"}); err != nil {
		t.Errorf("CreatePet after a restore that was refused = %v", err)
	}
	must(t, s.Close())
	restore(t, saved, path)
}

func TestRestoreRefuses(t *testing.T) {
	make := func(change func(path string)) func(t *testing.T) string {
		return func(t *testing.T) string {
			path, _ := filled(t)
			change(path)
			return path
		}
	}
	own := make(func(string) {})
	alter := func(texts ...string) func(t *testing.T) string {
		return make(func(path string) {
			db := raw(t, path)
			execute(t, db, texts...)
			db.Close()
		})
	}
	for _, tt := range []struct {
		name             string
		backup, database func(t *testing.T) string
		want             string
	}{
		{"a damaged backup", make(func(path string) {
			content := readFile(t, path)
			writeFile(t, path, content[:len(content)-4096])
		}), own, "is damaged"},
		{"text", make(func(path string) { writeFile(t, path, []byte(strings.Repeat("text ", 1000))) }), own, "it is not a SQLite database"},
		{"an empty backup", make(func(path string) { writeFile(t, path, nil) }), own, "is empty"},
		{"a backup of a newer version", alter("INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)"), own, "a newer version of this program wrote it"},
		{"a backup of another program", alter("PRAGMA application_id = 7"), own, "it belongs to another program"},
		{"a backup with a trigger", alter("CREATE TRIGGER spy AFTER INSERT ON pets BEGIN DELETE FROM keys; END"), own, "its schema is not that of this program: trigger spy"},
		{"a backup with a view in the place of a table", alter("DROP TABLE audit", "CREATE VIEW audit AS SELECT * FROM keys"), own, "index audit_by_time"},
		{"a database of another program", own, alter("PRAGMA application_id = 7", "PRAGMA user_version = 5"), "it belongs to another program"},
		{"text as the database", own, make(func(path string) { writeFile(t, path, []byte("root:x:0:0:root:/root:/bin/sh\n")) }), "it is not a SQLite database"},
		{"a directory as the database", own, func(t *testing.T) string { return t.TempDir() }, "it is not a regular file"},
		{"no backup", make(func(path string) { os.Remove(path) }), own, "no such file"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			from, path := tt.backup(t), tt.database(t)
			before, _ := os.ReadFile(path)
			refuseRestore(t, from, path, tt.want)
			if after, _ := os.ReadFile(path); !bytes.Equal(before, after) {
				t.Error("the database was changed")
			}
			if tt.name != "a directory as the database" {
				checkLeft(t, path, filepath.Base(path))
			}
		})
	}
	path := own(t)
	refuseRestore(t, path, path, "is the database itself")
	if err := refuseRestore(t, path+"x", path, ""); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("Restore of no backup = %v, want an error that wraps fs.ErrNotExist", err)
	}
	refuseRestore(t, path, filepath.Join(t.TempDir(), "gone", "pets.db"), "cannot write in the directory")
	refuseRestore(t, path, linkTo(t, "nothing"), "link.db: file already exists")
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := sqlite.Restore(ctx, own(t), path, operator, later, sqlite.Options{}); !errors.Is(err, context.Canceled) {
		t.Errorf("Restore with a canceled context = %v, want context.Canceled", err)
	}
	checkLeft(t, path, filepath.Base(path))
}

// linkTo makes a symbolic link in a directory of its own.
func linkTo(t *testing.T, to string) string {
	t.Helper()
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink(to, link); err != nil {
		t.Skip(err)
	}
	return link
}

// restoreWithoutEnd restores two backups in turn. It prints a line for each restore.
func restoreWithoutEnd(ctx context.Context, path string) error {
	for n := 0; ; n++ {
		r, err := sqlite.Restore(ctx, fmt.Sprint(path, ".", n%2+1), path, operator, time.Now(), sqlite.Options{})
		if err != nil {
			return err
		}
		fmt.Println("restored")
		os.Remove(r.Replaced)
	}
}

// openWithoutEnd opens the database again and again, each time to add a pet. That may
// fail only if it has to wait for too long.
func openWithoutEnd(ctx context.Context, path string) error {
	for {
		err := withStore(ctx, path, func(s *sqlite.Store) error {
			_, err := s.CreatePet(ctx, store.NewPet{Name: "added"})
			return err
		})
		if err != nil && !errors.Is(err, store.ErrUnavailable) {
			fmt.Println(err)
		} else {
			fmt.Println("added or waited")
		}
	}
}

// twoBackups makes a database and two backups of it, with one pet and with two.
func twoBackups(t *testing.T) string {
	t.Helper()
	path := tempDatabase(t)
	for n := range 2 {
		do(t, path, func(s *sqlite.Store) { addPet(t, s, fmt.Sprint(n+1)) })
		_, err := sqlite.Backup(t.Context(), path, fmt.Sprint(path, ".", n+1), sqlite.Options{})
		must(t, err)
	}
	return path
}

// A restore that is killed has replaced everything or nothing.
func TestKilledRestore(t *testing.T) {
	path := twoBackups(t)
	rounds := 4
	if testenv.IsLong() {
		rounds = 6
	}
	for round := range rounds {
		killAfter(t, program(t, "restore without end", path), 1+round%2)
		do(t, path, func(s *sqlite.Store) {
			pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10})
			if err != nil || len(pets) != 1 && len(pets) != 2 || pets[len(pets)-1].Name != fmt.Sprint(len(pets)) {
				t.Errorf("round %d: the pets are %v (%v), want those of one of the backups", round, pets, err)
			}
		})
		checkIntegrity(t, path)
	}
}

// Servers that start during restores find a whole database, before or after.
func TestRestoresWhileServersStart(t *testing.T) {
	path := twoBackups(t)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan []string)
	for range 2 {
		cmd := program(t, "open without end", path)
		go func() { ended <- killAfter(t, cmd, 30) }()
	}
	restored := 0
	go func() {
		defer close(ended)
		for n := 0; ctx.Err() == nil; n++ {
			at := later.Add(time.Duration(n) * time.Second)
			r, err := sqlite.Restore(t.Context(), fmt.Sprint(path, ".", n%2+1), path, operator, at, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
			switch {
			case err == nil:
				restored++
				os.Remove(r.Replaced)
			case !errors.Is(err, sqlite.ErrInUse):
				t.Errorf("Restore = %v", err)
			}
		}
	}()
	for range 2 {
		for _, line := range <-ended {
			if line != "added or waited" {
				t.Errorf("a server that starts during restores says %q", line)
			}
		}
	}
	stop()
	for range ended {
	}
	t.Logf("%d restores", restored)
	do(t, path, func(*sqlite.Store) {})
	checkIntegrity(t, path)
}

// interrupted returns the path of a database, of which a process that was killed has
// changed half.
func interrupted(t *testing.T) string {
	t.Helper()
	path, _ := filled(t)
	db := raw(t, path)
	execute(t, db, "PRAGMA journal_mode = DELETE", "PRAGMA cache_size = 2", manyPets,
		"BEGIN IMMEDIATE", "DELETE FROM idempotency_keys", "DELETE FROM pets", manyPets)
	copied := filepath.Join(t.TempDir(), "pets.db")
	writeFile(t, copied, readFile(t, path))
	writeFile(t, copied+"-journal", readFile(t, path+"-journal"))
	return copied
}

const manyPets = `INSERT INTO pets (name, category_id, status)
	WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 2000) SELECT 'Rex', i, 'sold' FROM n`

// What a process that was killed has not committed is not read as if it had: the file
// would seem damaged, or to have other pets.
func TestAnInterruptedWriteIsNotRestored(t *testing.T) {
	saved, path := interrupted(t), tempDatabase(t)
	refuseRestore(t, saved, path, "a process was killed while it wrote to the file; run petstore keys list for it once")
	checkLeft(t, path)
	for range 2 {
		if r := checkSound(t, saved); r.Pets != 2001 {
			t.Errorf("Backup = %+v, want the 2001 pets that were committed", r)
		}
	}
	if r := restore(t, saved, path); r.Pets != 2001 {
		t.Errorf("Restore after a command = %+v, want the 2001 pets that were committed", r)
	}
}
