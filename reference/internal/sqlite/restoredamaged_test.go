package sqlite_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A database whose keys cannot be read is refused and not changed: each key may have been
// revoked. Once it is moved away, all keys are named.
func TestRestoreOfADamagedDatabase(t *testing.T) {
	overwrite := func(b []byte, from, n int) []byte {
		b = bytes.Clone(b)
		copy(b[from:], bytes.Repeat([]byte{0xff}, n))
		return b
	}
	for name, harm := range map[string]func([]byte) []byte{
		"the header":     func(b []byte) []byte { return overwrite(b, 0, 100) },
		"the schema":     func(b []byte) []byte { return overwrite(b, 100, 2000) },
		"all the rest":   func(b []byte) []byte { return overwrite(b, 4096, len(b)-4096) },
		"it is cut off":  func(b []byte) []byte { return b[:2*4096+100] },
		"it is empty":    func(b []byte) []byte { return nil },
		"it is one byte": func(b []byte) []byte { return []byte{0} },
	} {
		t.Run(name, func(t *testing.T) {
			path, key := filled(t)
			saved := backup(t, path)
			harmed := harm(readFile(t, path))
			writeFile(t, path, harmed)
			r, err := sqlite.Restore(t.Context(), saved, path, operator, later, sqlite.Options{})
			if err == nil || !strings.Contains(err.Error(), "move it and its log (-wal) away, restore again") {
				t.Errorf("Restore = %+v, %v, want that it says what to do", r, err)
			}
			// SQLite may have changed counters in the header, and filled up the last page.
			if whole := len(harmed) / 4096 * 4096; whole > 0 && !bytes.HasPrefix(readFile(t, path)[100:], harmed[100:whole]) {
				t.Error("the damaged file was changed")
			}
			checkLeft(t, path, filepath.Base(path))
			if err := os.Rename(path, path+".damaged"); err != nil {
				t.Fatal(err)
			}
			r = restore(t, saved, path)
			checkIDs(t, "keys of which it is not known whether they were revoked", r.Unknown, key.ID)
		})
	}
}

func TestRestoreWithoutADatabase(t *testing.T) {
	path, key := filled(t)
	saved := backup(t, path)
	// A log that is left would be applied to the restored file.
	s := open(t, path, sqlite.Options{})
	addPet(t, s, "Tom")
	log := readFile(t, path+"-wal")
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	writeFile(t, path+"-wal", log)
	if r, err := sqlite.Restore(t.Context(), saved, path, operator, later, sqlite.Options{}); err == nil || !strings.Contains(err.Error(), "its log "+path+"-wal does; move the log") {
		t.Errorf("Restore beside a log = %+v, %v, want that it says what to do", r, err)
	}
	checkLeft(t, path, filepath.Base(path)+"-wal")
	if err := os.Remove(path + "-wal"); err != nil {
		t.Fatal(err)
	}

	r := restore(t, saved, path)
	if r.Replaced != "" || r.Rows["pets"] != 1 {
		t.Errorf("Restore = %+v, want a pet, and that nothing was replaced", r)
	}
	checkIDs(t, "keys of which it is not known whether they were revoked", r.Unknown, key.ID)
	do(t, path, func(s *sqlite.Store) {
		if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10}); err != nil || len(pets) != 1 {
			t.Errorf("the pets are %v (%v), want that of the backup", pets, err)
		}
	})
}

// Schemas of other versions can be restored and replaced.
func TestRestoreOfOtherVersions(t *testing.T) {
	newer := []string{"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)", "ALTER TABLE keys ADD COLUMN color TEXT"}
	for _, tt := range []struct {
		name             string
		backup, database int64 // versions
		alter            []string
		known            bool
	}{
		{"an older backup", 3, sqlite.Latest, nil, true},
		{"an older database", sqlite.Latest, 4, nil, true},
		{"both older", 2, 5, nil, true},
		{"a database without keys", 3, 1, nil, false},
		{"a newer database", sqlite.Latest, sqlite.Latest, newer, true},
		{"an older backup for a newer database", 3, sqlite.Latest, newer, true},
		{"a newer database with other keys", sqlite.Latest, sqlite.Latest, []string{"ALTER TABLE keys RENAME TO credentials", newer[0]}, false},
	} {
		t.Run(tt.name, func(t *testing.T) {
			path, saved := tempDatabase(t), filepath.Join(t.TempDir(), "saved.db")
			sqlite.MigrateTo(t, path, tt.database) // its key is revoked
			sqlite.MigrateTo(t, saved, tt.backup)
			for file, texts := range map[string][]string{saved: {"UPDATE keys SET revoked = NULL"}, path: tt.alter} {
				db := raw(t, file)
				execute(t, db, texts...)
				db.Close()
			}
			if !tt.known {
				_, err := sqlite.Restore(t.Context(), saved, path, operator, later, sqlite.Options{})
				if err == nil || !strings.Contains(err.Error(), "cannot be read") {
					t.Errorf("Restore = %v, want that the keys cannot be read", err)
				}
				return
			}
			r := restore(t, saved, path)
			if r.From != tt.backup || r.Schema != sqlite.Latest {
				t.Errorf("Restore = %+v, want schema %d", r, tt.backup)
			}
			checkIDs(t, "keys that end sooner", r.Ended, "key_1")
			do(t, path, func(s *sqlite.Store) {
				if got, err := s.Key(t.Context(), "key_1"); err != nil || got.Active(now) {
					t.Errorf("the key is %+v (%v), want that it is not valid", got, err)
				}
			})
		})
	}
}

// The backup command of SQLite, which was the way before this program had its own,
// copies the journal mode too.
func TestRestoreOfACopyInWALMode(t *testing.T) {
	path, _ := filled(t)
	saved := filepath.Join(t.TempDir(), "copy.db")
	writeFile(t, saved, readFile(t, path)) // closed, so its log is empty
	if err := os.Chmod(filepath.Dir(saved), 0o500); err != nil {
		t.Fatal(err)
	}
	defer os.Chmod(filepath.Dir(saved), 0o700)
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Tom") })
	if r := restore(t, saved, path); r.Rows["pets"] != 1 {
		t.Errorf("Restore = %+v, want the 1 pet of the copy", r)
	}
	checkLeft(t, saved, "copy.db")
}
