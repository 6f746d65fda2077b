package sqlite_test

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var operator = store.Actor{Name: "cli:ada@host"}

// later is when databases are restored.
var later = now.Add(time.Hour)

func restore(t *testing.T, backup, path string) sqlite.Restored {
	t.Helper()
	r, err := sqlite.Restore(t.Context(), backup, path, operator, later, sqlite.Options{})
	must(t, err)
	checkIntegrity(t, path)
	return r
}

// refuseRestore checks that a restore is refused, and returns the error, which has a text.
func refuseRestore(t *testing.T, backup, path, want string) error {
	t.Helper()
	r, err := sqlite.Restore(t.Context(), backup, path, operator, later, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Restore = %+v, %v, want that it says %q", r, err, want)
	}
	return err
}

// checkSound checks that a database can be backed up, and returns the report.
func checkSound(t *testing.T, path string) sqlite.Report {
	t.Helper()
	r, err := sqlite.Backup(t.Context(), path, filepath.Join(t.TempDir(), "backup.db"), sqlite.Options{})
	must(t, err)
	return r
}

// checkPets checks the names of all pets.
func checkPets(t *testing.T, s *sqlite.Store, want ...string) {
	t.Helper()
	pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10})
	var got []string
	for _, p := range pets {
		got = append(got, p.Name)
	}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("the pets (%v, -want +got):\n%s", err, diff)
	}
}

// do changes the database at a path.
func do(t *testing.T, path string, change func(*sqlite.Store)) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	must(t, err)
	change(s)
	must(t, s.Close())
}

func addKey(t *testing.T, s *sqlite.Store, digest byte) store.Key {
	t.Helper()
	key, err := s.CreateKey(t.Context(), newKey(digest), operator)
	must(t, err)
	return key
}

func rotate(t *testing.T, s *sqlite.Store, key store.Key, digest byte, at time.Time, overlap time.Duration) {
	t.Helper()
	r := store.Rotation{Digest: store.Digest{digest}, LastFour: "abcd", At: at, Overlap: overlap}
	_, err := s.RotateKey(t.Context(), key.ID, r, operator)
	must(t, err)
}

func addPet(t *testing.T, s *sqlite.Store, name string) store.Pet {
	t.Helper()
	pet, err := s.CreatePet(t.Context(), store.NewPet{Name: name})
	must(t, err)
	return pet
}

// checkUnknown checks the IDs of the keys of which a restore does not know whether they were
// revoked.
func checkUnknown(t *testing.T, r sqlite.Restored, want ...string) {
	t.Helper()
	var got []string
	for _, k := range r.Unknown {
		got = append(got, k.ID)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("keys of which it is not known whether they were revoked (-want +got):\n%s", diff)
	}
}

// No key is valid for longer after a restore than before it.
func TestRestoreWidensNoAccess(t *testing.T) {
	path := tempDatabase(t)
	var kept, revoked, rotated, shortened, expired, added, addedRevoked store.Key
	do(t, path, func(s *sqlite.Store) {
		kept, revoked, rotated, shortened = addKey(t, s, 1), addKey(t, s, 2), addKey(t, s, 3), addKey(t, s, 4)
		k := newKey(5)
		k.Expires = now.Add(time.Minute)
		var err error
		expired, err = s.CreateKey(t.Context(), k, operator)
		must(t, err)
	})
	saved := backup(t, path)
	do(t, path, func(s *sqlite.Store) {
		added, addedRevoked = addKey(t, s, 6), addKey(t, s, 7)
		for _, key := range []store.Key{revoked, addedRevoked, expired} {
			_, err := s.RevokeKey(t.Context(), key.ID, now.Add(time.Minute), operator)
			must(t, err)
		}
		for i, key := range []store.Key{rotated, shortened} {
			r := store.Rotation{Digest: store.Digest{byte(10 + i)}, LastFour: "abcd", At: now.Add(time.Minute), Overlap: time.Duration(i) * 2 * time.Hour}
			_, err := s.RotateKey(t.Context(), key.ID, r, operator)
			must(t, err)
		}
	})

	r := restore(t, saved, path)
	checkUnknown(t, r)
	if r.Keys != 9 {
		t.Errorf("there are %d keys, want 9", r.Keys)
	}
	do(t, path, func(s *sqlite.Store) {
		for _, tt := range []struct {
			name string
			key  store.Key
			ends time.Time
		}{
			{"a key that nothing happened to", kept, time.Time{}},
			{"a revoked key", revoked, now.Add(time.Minute)},
			{"a rotated key", rotated, now.Add(time.Minute)},
			{"a key that was rotated with an overlap", shortened, now.Add(time.Minute + 2*time.Hour)},
			{"an expired key", expired, now.Add(time.Minute)},
			{"a key of after the backup", added, time.Time{}},
			{"a key of after the backup that was revoked", addedRevoked, now.Add(time.Minute)},
		} {
			key, err := s.Key(t.Context(), tt.key.ID)
			if err != nil || tt.ends.IsZero() && !key.Active(now.AddDate(100, 0, 0)) ||
				!tt.ends.IsZero() && (!key.Active(tt.ends.Add(-time.Microsecond)) || key.Active(tt.ends)) {
				t.Errorf("%s is %+v (%v), want that it ends at %v", tt.name, key, err, tt.ends)
			}
		}
	})
}

func TestRestore(t *testing.T) {
	path := tempDatabase(t)
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Rex") })
	saved := backup(t, path)
	do(t, path, func(s *sqlite.Store) {
		addPet(t, s, "Tom")
		must(t, s.AddAudit(t.Context(), store.AuditEntry{At: now, Actor: "admin", Action: store.BanEnd, Target: "owner:ada"}))
	})
	before := string(readFile(t, saved))
	r := restore(t, saved, path)
	if r.From != r.Schema || r.Pets != 1 {
		t.Errorf("Restore = %+v, want 1 pet", r)
	}
	do(t, path, func(s *sqlite.Store) {
		checkPets(t, s, "Rex")
		if pet := addPet(t, s, "Ben"); pet.ID != 3 {
			t.Errorf("the next pet has ID %d, want 3: 2 was given before", pet.ID)
		}
		want := []store.AuditEntry{
			{At: later, Actor: operator.Name, Action: "database.restore", Target: saved,
				Detail: fmt.Sprintf(`replaced=%q`, r.Replaced)},
			{At: now, Actor: "admin", Action: "ban.end", Target: "owner:ada"},
		}
		got, err := s.ListAudit(t.Context(), store.AuditQuery{Limit: 10})
		must(t, err)
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.AuditEntry{}, "ID")); diff != "" {
			t.Errorf("the audit log (-want +got):\n%s", diff)
		}
	})
	do(t, r.Replaced, func(s *sqlite.Store) { checkPets(t, s, "Rex", "Tom") })
	if info, err := os.Stat(r.Replaced); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the replaced file has mode %v (%v), want 0600", info.Mode(), err)
	}
	if before != string(readFile(t, saved)) {
		t.Error("the backup was changed")
	}
	checkLeft(t, path, filepath.Base(path), filepath.Base(r.Replaced))
}

// checkLeft checks that these are the files beside a database.
func checkLeft(t *testing.T, path string, want ...string) {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	must(t, err)
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files beside the database (-want +got):\n%s", diff)
	}
}

// A chain of restores keeps what each of the databases knew.
func TestRestoreOfAnotherBackupKeepsEndsOfKeys(t *testing.T) {
	path := tempDatabase(t)
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Rex") })
	first := backup(t, path)
	var revoked, rotated, atOnce store.Key
	do(t, path, func(s *sqlite.Store) { revoked, rotated, atOnce = addKey(t, s, 1), addKey(t, s, 2), addKey(t, s, 3) })
	second := backup(t, path)
	do(t, path, func(s *sqlite.Store) {
		_, err := s.RevokeKey(t.Context(), revoked.ID, now, operator)
		must(t, err)
		rotate(t, s, rotated, 4, now.Add(10*time.Minute), 20*time.Minute)
		rotate(t, s, atOnce, 5, now.Add(time.Millisecond), 0)
	})
	restore(t, first, path)
	r, err := sqlite.Restore(t.Context(), second, path, operator, later.Add(time.Second), sqlite.Options{})
	must(t, err)
	checkUnknown(t, r)
	checkSound(t, path)
	do(t, path, func(s *sqlite.Store) {
		for _, key := range []store.Key{revoked, rotated, atOnce} {
			if got, err := s.Key(t.Context(), key.ID); err != nil || got.Active(later) {
				t.Errorf("the key is %+v (%v), want that it is not valid again", got, err)
			}
		}
		if got, err := s.Key(t.Context(), rotated.ID); err != nil || !got.Expires.Equal(now.Add(30*time.Minute)) {
			t.Errorf("the rotated key is %+v (%v), want that it expires at the end of the overlap", got, err)
		}
	})
}

// The name of a backup may have anything in it, and the audit log has it in quotes.
func TestRestoreOfABackupWithAnOddName(t *testing.T) {
	path, _ := filled(t)
	for name, want := range map[string]string{"tab\t.db": `tab\t.db`, "octet\xff.db": `octet\xff.db`, "plain.db": "plain.db"} {
		saved := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(saved, readFile(t, path), 0o600); err != nil {
			t.Logf("skipped: this system has no such names: %v", err)
			continue
		}
		database := tempDatabase(t)
		restore(t, saved, database)
		do(t, database, func(s *sqlite.Store) {
			entries, err := s.ListAudit(t.Context(), store.AuditQuery{Limit: 1})
			if err != nil || len(entries) != 1 || !strings.HasSuffix(entries[0].Target, want) {
				t.Errorf("the newest entries of the audit log are %+v (%v), want a restore of %s", entries, err, want)
			}
		})
	}
}

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
			refuseRestore(t, saved, path, "move it and its log (-wal) away, restore again")
			// SQLite may have changed counters in the header, and filled up the last page.
			if whole := len(harmed) / 4096 * 4096; whole > 0 && !bytes.HasPrefix(readFile(t, path)[100:], harmed[100:whole]) {
				t.Error("the damaged file was changed")
			}
			checkLeft(t, path, filepath.Base(path))
			must(t, os.Rename(path, path+".damaged"))
			r := restore(t, saved, path)
			checkUnknown(t, r, key.ID)
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
	must(t, s.Close())
	must(t, os.Remove(path))
	writeFile(t, path+"-wal", log)
	refuseRestore(t, saved, path, "its log "+path+"-wal does; move the log")
	checkLeft(t, path, filepath.Base(path)+"-wal")
	must(t, os.Remove(path+"-wal"))

	r := restore(t, saved, path)
	if r.Replaced != "" || r.Pets != 1 {
		t.Errorf("Restore = %+v, want a pet, and that nothing was replaced", r)
	}
	checkUnknown(t, r, key.ID)
	do(t, path, func(s *sqlite.Store) { checkPets(t, s, "Rex") })
}

// Schemas of other versions can be restored and replaced.
func TestRestoreOfOtherVersions(t *testing.T) {
	newer := []string{"INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)", "ALTER TABLE keys ADD COLUMN color TEXT"}
	for _, tt := range []struct {
		name         string
		older, newer bool // the backup, the database
		alter        []string
		want         string // the error
	}{
		{"an older backup", true, true, nil, ""},
		{"an older database", false, false, nil, ""},
		{"an older backup for a newer database", true, true, newer, ""},
		{"a newer database with other keys", false, true, []string{"ALTER TABLE keys RENAME TO credentials", newer[0]}, "cannot be read"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			saved, key := filled(t)
			path, _ := filled(t)
			sqlite.AddMigrations(t, addToys)
			from := sqlite.Version
			if !tt.older {
				from++
				open(t, saved, sqlite.Options{}).Close()
			}
			if tt.newer {
				open(t, path, sqlite.Options{}).Close()
			}
			db := raw(t, path)
			execute(t, db, append([]string{"UPDATE keys SET revoked = created"}, tt.alter...)...)
			db.Close()
			if tt.want != "" {
				refuseRestore(t, saved, path, tt.want)
				return
			}
			r := restore(t, saved, path)
			if r.From != int64(from) || r.Schema != sqlite.Version+1 {
				t.Errorf("Restore = %+v, want schema %d", r, from)
			}
			do(t, path, func(s *sqlite.Store) {
				if got, err := s.Key(t.Context(), key.ID); err != nil || got.Active(now) {
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
	must(t, os.Chmod(filepath.Dir(saved), 0o500))
	defer os.Chmod(filepath.Dir(saved), 0o700)
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Tom") })
	if r := restore(t, saved, path); r.Pets != 1 {
		t.Errorf("Restore = %+v, want the 1 pet of the copy", r)
	}
	checkLeft(t, saved, "copy.db")
}
