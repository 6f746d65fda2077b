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
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// harmBySQL changes a database with the bare driver.
func harmBySQL(texts ...string) func(*testing.T, string) {
	return func(t *testing.T, path string) {
		db := raw(t, path)
		execute(t, db, texts...)
		must(t, db.Close())
	}
}

func harmContent(change func([]byte) []byte) func(*testing.T, string) {
	return func(t *testing.T, path string) { writeFile(t, path, change(readFile(t, path))) }
}

func overwrite(from, n int) func(*testing.T, string) {
	return harmContent(func(b []byte) []byte { return slices.Replace(b, from, from+n, bytes.Repeat([]byte{0xff}, n)...) })
}

// A file that is not a database of this program, or not whole, is refused and not changed. So
// is a newer one, and one with a trigger or a view.
func TestRefusedFiles(t *testing.T) {
	const schema = "its schema is not that of this program: "
	for _, tt := range []struct {
		name  string
		harm  func(t *testing.T, path string)
		want  string
		opens bool // only what reads everything finds the harm
	}{
		{"text", harmContent(func([]byte) []byte { return bytes.Repeat([]byte("Dear Ada, "), 1000) }), "it is not a SQLite database", false},
		{"short text", harmContent(func([]byte) []byte { return []byte("hello") }), "it is not a SQLite database", false},
		{"an empty file", harmContent(func([]byte) []byte { return nil }), "is empty", true},
		{"an overwritten header", overwrite(0, 100), "it is not a SQLite database", false},
		{"an overwritten schema", overwrite(100, 1000), "it is damaged; restore it from a backup", false},
		{"overwritten in the middle", overwrite(4096, 8192), "is damaged", true},
		{"cut off", harmContent(func(b []byte) []byte { return b[:len(b)-4096] }), "is damaged", true},
		{"another program", harmBySQL("PRAGMA application_id = 7"), "it belongs to another program", false},
		{"tables of another program", func(t *testing.T, path string) {
			must(t, os.Remove(path))
			harmBySQL("CREATE TABLE bookmarks (url TEXT)")(t, path)
		}, "it belongs to another program", false},
		{"a newer version", harmBySQL(newer),
			"a newer version of this program wrote it (schema 99, this version knows 9)", false},
		{"a view", harmBySQL("CREATE VIEW spy AS SELECT digest FROM keys"), schema + "view spy", false},
		{"a trigger", harmBySQL("CREATE TRIGGER spy AFTER INSERT ON pets BEGIN DELETE FROM keys; END"), schema + "trigger spy", false},
		{"a trigger with the name of a table", harmBySQL("CREATE TRIGGER goose_db_version AFTER INSERT ON keys BEGIN SELECT 1; END"),
			schema + "trigger goose_db_version", false},
		{"a status that does not exist", harmBySQL("PRAGMA ignore_check_constraints = 1", "UPDATE pets SET status = 'lost'"),
			"CHECK constraint failed in pets", true},
		{"a key of a request without its pet", harmBySQL("UPDATE pets SET id = 9"),
			"a row of idempotency_keys refers to a row of pets that does not exist", true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, _ := filled(t)
			database, _ := filled(t)
			tt.harm(t, path)
			harmed, before := readFile(t, path), readFile(t, database)
			to := filepath.Join(t.TempDir(), "backup.db")
			for doing, do := range map[string]func() error{
				"Open": func() error {
					s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
					if err == nil {
						s.Close()
					}
					return err
				},
				"Backup": func() error {
					_, err := sqlite.Backup(t.Context(), path, to)
					return err
				},
				"Export": func() error {
					_, err := export(t, path)
					return err
				},
				"Restore": func() error {
					_, err := sqlite.Restore(t.Context(), path, database, operator, later)
					return err
				},
			} {
				if tt.opens && doing == "Open" {
					continue
				}
				if err := do(); err == nil || !strings.Contains(err.Error(), tt.want) || !strings.Contains(err.Error(), path) {
					t.Errorf("%s = %v, want that it names the file and says %q", doing, err, tt.want)
				}
				if !bytes.Equal(harmed, readFile(t, path)) || !bytes.Equal(before, readFile(t, database)) {
					t.Errorf("%s has changed a file", doing)
				}
			}
			checkLeft(t, path, "pets.db")
			checkLeft(t, database, "pets.db")
			checkLeft(t, to)
		})
	}
}

// What cannot be read, or be written, is named. Nothing is left of what was tried.
func TestRefusedPlaces(t *testing.T) {
	path, _ := filled(t)
	saved, dir := backup(t, path), t.TempDir()
	link := filepath.Join(t.TempDir(), "link.db")
	if err := os.Symlink("nothing", link); err != nil {
		t.Skipf("skipped: symbolic links cannot be made here: %v", err)
	}
	before := readFile(t, path)
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	open := func(path string) error {
		s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
		if err == nil {
			s.Close()
		}
		return err
	}
	back := func(ctx context.Context, path, to string) error {
		_, err := sqlite.Backup(ctx, path, to)
		return err
	}
	restore := func(ctx context.Context, backup, path string) error {
		_, err := sqlite.Restore(ctx, backup, path, operator, later)
		return err
	}
	_, exportErr := export(t, filepath.Join(dir, "none.db"))
	gone := filepath.Join(dir, "gone", "pets.db")
	for name, tt := range map[string]struct {
		err  error
		is   error // wrapped, unless it is nil
		want string
	}{
		"Open of a folder":                         {open(dir), nil, "it is not a regular file"},
		"Open in no folder":                        {open(gone), nil, "cannot write in the directory " + filepath.Dir(gone)},
		"Backup of nothing":                        {back(t.Context(), path+"x", filepath.Join(dir, "y")), fs.ErrNotExist, path + "x"},
		"Backup to a file that exists":             {back(t.Context(), path, saved), fs.ErrExist, saved},
		"Backup to the database itself":            {back(t.Context(), path, path), fs.ErrExist, path},
		"Backup to no folder":                      {back(t.Context(), path, gone), nil, "cannot write in the directory " + filepath.Dir(gone)},
		"Backup with a context that ended":         {back(canceled, path, filepath.Join(dir, "y")), context.Canceled, ""},
		"Export of nothing":                        {exportErr, fs.ErrNotExist, "none.db"},
		"Restore of nothing":                       {restore(t.Context(), path+"x", path), fs.ErrNotExist, path + "x"},
		"Restore of the database itself":           {restore(t.Context(), path, path), nil, "is the database itself"},
		"Restore to a folder":                      {restore(t.Context(), saved, dir), nil, "it is not a regular file"},
		"Restore to no folder":                     {restore(t.Context(), saved, gone), nil, "cannot write in the directory " + filepath.Dir(gone)},
		"Restore to a link to nothing":             {restore(t.Context(), saved, link), nil, "link.db: file already exists"},
		"Restore with a context that ended":        {restore(canceled, saved, path), context.Canceled, ""},
		"Restore to a database of another program": {restore(t.Context(), saved, foreign(t)), nil, "it belongs to another program"},
	} {
		if err := tt.err; err == nil || tt.is != nil && !errors.Is(err, tt.is) || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s = %v, want an error that wraps %v and says %q", name, err, tt.is, tt.want)
		}
	}
	checkLeft(t, filepath.Join(dir, "y"))
	checkLeft(t, saved, filepath.Base(saved))
	checkLeft(t, path, "pets.db")
	if !bytes.Equal(before, readFile(t, path)) {
		t.Error("the database was changed")
	}
}

// foreign returns the path of a database of another program.
func foreign(t *testing.T) string {
	path := tempDatabase(t)
	harmBySQL("PRAGMA application_id = 7", "PRAGMA user_version = 5")(t, path)
	return path
}

// Another process that has the database open refuses a restore and an export: it could write
// what they miss. It goes on itself.
func TestRefusedWhileTheDatabaseIsOpen(t *testing.T) {
	path, _ := filled(t)
	saved := backup(t, path)
	s := open(t, path, sqlite.Options{})
	sqlite.ShortenBusyTimeout(t)
	_, restoreErr := sqlite.Restore(t.Context(), saved, path, operator, later)
	_, exportErr := export(t, path)
	for doing, err := range map[string]error{"Restore": restoreErr, "Export": exportErr} {
		if want := path + " is in use by another process, such as a server; stop it first"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s = %v, want %q", doing, err, want)
		}
	}
	addPet(t, s, "Tom")
	must(t, s.Close())
	if names, err := export(t, path); err != nil || len(names) != 2 {
		t.Errorf("Export = %v, %v, want two pets", names, err)
	}
	restore(t, saved, path, later)
}
