package sqlite_test

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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

func restore(t *testing.T, backup, path string, at time.Time) sqlite.Restored {
	t.Helper()
	r, err := sqlite.Restore(t.Context(), backup, path, operator, at)
	must(t, err)
	checkIntegrity(t, path)
	return r
}

// checkSound checks that a database can be backed up, and returns the report.
func checkSound(t *testing.T, path string) sqlite.Report {
	t.Helper()
	r, err := sqlite.Backup(t.Context(), path, filepath.Join(t.TempDir(), "backup.db"))
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

func addPet(t *testing.T, s *sqlite.Store, name string) store.Pet {
	t.Helper()
	pet, err := s.CreatePet(t.Context(), store.NewPet{Name: name})
	must(t, err)
	return pet
}

// No key is valid for longer after restores than before them: neither after one of a backup
// that does not know the keys, nor after the next, of one in which they are valid.
func TestRestoresWidenNoAccess(t *testing.T) {
	path := tempDatabase(t)
	do(t, path, func(*sqlite.Store) {})
	empty := backup(t, path)
	var kept, revoked, rotated, overlapping, expired, added, addedRevoked store.Key
	do(t, path, func(s *sqlite.Store) {
		kept, revoked, rotated, overlapping = addKey(t, s, 1), addKey(t, s, 2), addKey(t, s, 3), addKey(t, s, 4)
		k := newKey(5)
		k.Expires = now.Add(time.Minute)
		var err error
		expired, err = s.CreateKey(t.Context(), k, operator)
		must(t, err)
	})
	saved := backup(t, path)
	var fresh []string
	do(t, path, func(s *sqlite.Store) {
		added, addedRevoked = addKey(t, s, 6), addKey(t, s, 7)
		for _, key := range []store.Key{revoked, addedRevoked, expired} {
			_, err := s.RevokeKey(t.Context(), key.ID, now.Add(time.Minute), operator)
			must(t, err)
		}
		for i, key := range []store.Key{rotated, overlapping} {
			r := store.Rotation{Digest: store.Digest{byte(10 + i)}, LastFour: "abcd", At: now.Add(time.Minute), Overlap: time.Duration(i) * 2 * time.Hour}
			key, err := s.RotateKey(t.Context(), key.ID, r, operator)
			must(t, err)
			fresh = append(fresh, key.ID)
		}
	})
	slices.Sort(fresh) // they were created at one instant, after the other

	restore(t, empty, path, later)
	r := restore(t, saved, path, later.Add(time.Second))
	if diff := cmp.Diff(append([]string{added.ID}, fresh...), ids(r.Added)); diff != "" || len(r.Unknown) > 0 || r.Keys != 9 {
		t.Errorf("Restore = %+v, want 9 keys, of which these were added (-want +got):\n%s", r, diff)
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
			{"a key that was rotated with an overlap", overlapping, now.Add(time.Minute + 2*time.Hour)},
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

func ids(keys []store.Key) (list []string) {
	for _, k := range keys {
		list = append(list, k.ID)
	}
	return list
}

// A restore replaces pets, and adds to the audit log. It does not change the backup, which may
// have any name, and keeps what it replaces.
func TestRestore(t *testing.T) {
	path, saved := tempDatabase(t), filepath.Join(t.TempDir(), "tab\t.db")
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Rex") })
	must(t, os.Rename(backup(t, path), saved))
	do(t, path, func(s *sqlite.Store) {
		addPet(t, s, "Tom")
		must(t, s.AddAudit(t.Context(), store.AuditEntry{At: now, Actor: "admin", Action: store.BanEnd, Target: "owner:ada"}))
	})
	before := string(readFile(t, saved))
	r := restore(t, saved, path, later)
	if r.From != r.Schema || r.Pets != 1 {
		t.Errorf("Restore = %+v, want 1 pet", r)
	}
	do(t, path, func(s *sqlite.Store) {
		checkPets(t, s, "Rex")
		if pet := addPet(t, s, "Ben"); pet.ID != 3 {
			t.Errorf("the next pet has ID %d, want 3: 2 was given before", pet.ID)
		}
		want := []store.AuditEntry{
			{At: later, Actor: operator.Name, Action: "database.restore", Target: strings.ReplaceAll(saved, "\t", `\t`),
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
	checkMode(t, r.Replaced)
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

// A database whose keys cannot be read is refused and not changed: each key may have been
// revoked. Once it is moved away, all keys are named.
func TestRestoreOfADamagedDatabase(t *testing.T) {
	for name, harm := range map[string]func(*testing.T, string){
		"the header":     overwrite(0, 100),
		"the schema":     overwrite(100, 2000),
		"all the rest":   overwrite(4096, 60000),
		"it is cut off":  harmContent(func(b []byte) []byte { return b[:2*4096+100] }),
		"it is empty":    harmContent(func([]byte) []byte { return nil }),
		"it is one byte": harmContent(func([]byte) []byte { return []byte{0} }),
		"other keys":     harmBySQL("ALTER TABLE keys RENAME TO credentials", newer),
	} {
		t.Run(name, func(t *testing.T) {
			path, key := filled(t)
			saved := backup(t, path)
			harm(t, path)
			harmed := readFile(t, path)
			r, err := sqlite.Restore(t.Context(), saved, path, operator, later)
			if err == nil || !strings.Contains(err.Error(), "move it and its log (-wal) away, restore again") {
				t.Errorf("Restore = %+v, %v, want that it says what to do", r, err)
			}
			// SQLite may have changed counters in the header, and filled up the last page.
			if whole := len(harmed) / 4096 * 4096; whole > 0 && !bytes.HasPrefix(readFile(t, path)[100:], harmed[100:whole]) {
				t.Error("the damaged file was changed")
			}
			checkLeft(t, path, filepath.Base(path))
			must(t, os.Rename(path, path+".damaged"))
			r = restore(t, saved, path, later)
			if got := ids(r.Unknown); !slices.Equal(got, []string{key.ID}) || r.Replaced != "" || r.Pets != 1 {
				t.Errorf("Restore = %+v, want a pet, that nothing was replaced, and that %s may have been revoked", r, key.ID)
			}
		})
	}
}

// A log that is left of a database would be applied to the restored file.
func TestRestoreBesideALog(t *testing.T) {
	path, _ := filled(t)
	saved := backup(t, path)
	must(t, os.Rename(path, path+"-wal"))
	r, err := sqlite.Restore(t.Context(), saved, path, operator, later)
	if want := "its log " + path + "-wal does; move the log"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Restore = %+v, %v, want %q", r, err, want)
	}
	checkLeft(t, path, filepath.Base(path)+"-wal")
}

// newer makes a database one of a later version.
const newer = "INSERT INTO goose_db_version (version_id, is_applied) VALUES (99, TRUE)"

// Schemas of other versions can be restored and replaced.
func TestRestoreOfOtherVersions(t *testing.T) {
	for _, tt := range []struct {
		name         string
		older, newer bool // the backup, the database
		alter        []string
	}{
		{"an older backup", true, true, nil},
		{"an older database", false, false, nil},
		{"an older backup for a newer database", true, true, []string{newer, "ALTER TABLE keys ADD COLUMN color TEXT"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			saved, key := filled(t)
			path, _ := filled(t)
			sqlite.AddMigrations(t, addToys)
			from := int64(sqlite.Version)
			if !tt.older {
				from++
				open(t, saved, sqlite.Options{}).Close()
			}
			if tt.newer {
				open(t, path, sqlite.Options{}).Close()
			}
			harmBySQL(append([]string{"UPDATE keys SET revoked = created"}, tt.alter...)...)(t, path)
			if r := restore(t, saved, path, later); r.From != from || r.Schema != sqlite.Version+1 {
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

// A copy of the file of a server that has stopped is in WAL mode, and may be where nobody can
// write.
func TestRestoreOfACopyInWALMode(t *testing.T) {
	path, _ := filled(t)
	saved := filepath.Join(t.TempDir(), "copy.db")
	writeFile(t, saved, readFile(t, path))
	must(t, os.Chmod(filepath.Dir(saved), 0o500))
	defer os.Chmod(filepath.Dir(saved), 0o700)
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Tom") })
	if r := restore(t, saved, path, later); r.Pets != 1 {
		t.Errorf("Restore = %+v, want the 1 pet of the copy", r)
	}
	checkLeft(t, saved, "copy.db")
}

// restoreWithoutEnd restores two backups in turn. It prints a line for each restore.
func restoreWithoutEnd(ctx context.Context, path string) error {
	for n := 0; ; n++ {
		r, err := sqlite.Restore(ctx, fmt.Sprint(path, ".", n%2+1), path, operator, time.Now())
		if err != nil {
			return err
		}
		fmt.Println("restored")
		os.Remove(r.Replaced)
	}
}

// A restore that is killed has replaced everything or nothing.
func TestKilledRestore(t *testing.T) {
	path := tempDatabase(t)
	for n := range 2 { // two backups, with one pet and with two
		do(t, path, func(s *sqlite.Store) { addPet(t, s, fmt.Sprint(n+1)) })
		_, err := sqlite.Backup(t.Context(), path, fmt.Sprint(path, ".", n+1))
		must(t, err)
	}
	for round := range 4 {
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
	_, err := sqlite.Restore(t.Context(), saved, path, operator, later)
	if want := "a process was killed while it wrote to the file; run petstore keys list for it once"; err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("Restore = %v, want %q", err, want)
	}
	checkLeft(t, path)
	for range 2 {
		if r := checkSound(t, saved); r.Pets != 2001 {
			t.Errorf("Backup = %+v, want the 2001 pets that were committed", r)
		}
	}
	if r := restore(t, saved, path, later); r.Pets != 2001 {
		t.Errorf("Restore after a command = %+v, want the 2001 pets that were committed", r)
	}
}
