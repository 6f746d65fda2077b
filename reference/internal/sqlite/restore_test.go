package sqlite_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
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
	if err != nil {
		t.Fatalf("Restore = %v", err)
	}
	if len(r.Problems) > 0 {
		t.Errorf("the restored database has problems: %q", r.Problems)
	}
	checkIntegrity(t, path)
	return r
}

// do changes the database at a path.
func do(t *testing.T, path string, change func(*sqlite.Store)) {
	t.Helper()
	s, err := sqlite.Open(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	change(s)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
}

func addKey(t *testing.T, s *sqlite.Store, digest byte) store.Key {
	t.Helper()
	key, err := s.CreateKey(t.Context(), newKey(digest), operator)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func rotate(t *testing.T, s *sqlite.Store, key store.Key, digest byte, at time.Time, overlap time.Duration) {
	t.Helper()
	r := store.Rotation{Digest: store.Digest{digest}, LastFour: "abcd", At: at, Overlap: overlap}
	if _, err := s.RotateKey(t.Context(), key.ID, r, operator); err != nil {
		t.Fatal(err)
	}
}

func addPet(t *testing.T, s *sqlite.Store, name string) store.Pet {
	t.Helper()
	pet, err := s.CreatePet(t.Context(), store.NewPet{Name: name})
	if err != nil {
		t.Fatal(err)
	}
	return pet
}

func ids(keys []sqlite.RestoredKey) []string {
	list := []string{}
	for _, k := range keys {
		list = append(list, k.ID)
	}
	return list
}

func checkIDs(t *testing.T, what string, got []sqlite.RestoredKey, want ...string) {
	t.Helper()
	if diff := cmp.Diff(want, ids(got), cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("%s (-want +got):\n%s", what, diff)
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
		if expired, err = s.CreateKey(t.Context(), k, operator); err != nil {
			t.Fatal(err)
		}
	})
	saved := backup(t, path)
	var gone []store.Key
	do(t, path, func(s *sqlite.Store) {
		added, addedRevoked = addKey(t, s, 6), addKey(t, s, 7)
		for _, key := range []store.Key{revoked, addedRevoked, expired} {
			if _, err := s.RevokeKey(t.Context(), key.ID, now.Add(time.Minute), operator); err != nil {
				t.Fatal(err)
			}
		}
		for i, key := range []store.Key{rotated, shortened} {
			r := store.Rotation{Digest: store.Digest{byte(10 + i)}, LastFour: "abcd", At: now.Add(time.Minute), Overlap: time.Duration(i) * 2 * time.Hour}
			fresh, err := s.RotateKey(t.Context(), key.ID, r, operator)
			if err != nil {
				t.Fatal(err)
			}
			gone = append(gone, fresh)
		}
	})

	r := restore(t, saved, path)
	checkIDs(t, "keys of which it is not known whether they were revoked", r.Unknown)
	checkIDs(t, "keys that end sooner", r.Ended, sortedIDs(revoked, rotated, shortened)...)
	// Those of the rotations were created after the other.
	checkIDs(t, "keys that are gone", r.Gone, append([]string{added.ID}, sortedIDs(gone...)...)...)
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
		} {
			key, err := s.Key(t.Context(), tt.key.ID)
			if err != nil || tt.ends.IsZero() && !key.Active(now.AddDate(100, 0, 0)) ||
				!tt.ends.IsZero() && (!key.Active(tt.ends.Add(-time.Microsecond)) || key.Active(tt.ends)) {
				t.Errorf("%s is %+v (%v), want that it ends at %v", tt.name, key, err, tt.ends)
			}
		}
		if key, err := s.Key(t.Context(), added.ID); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("a key of after the backup is %+v, %v, want that it is gone", key, err)
		}
	})
}

// sortedIDs returns the IDs of keys that were created at one instant, as they are listed.
func sortedIDs(keys ...store.Key) []string {
	var list []string
	for _, k := range keys {
		list = append(list, k.ID)
	}
	slices.Sort(list)
	return list
}

func TestRestore(t *testing.T) {
	path := tempDatabase(t)
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Rex") })
	saved := backup(t, path)
	do(t, path, func(s *sqlite.Store) {
		addPet(t, s, "Tom")
		if err := s.AddAudit(t.Context(), store.AuditEntry{At: now, Actor: "admin", Action: store.BanEnd, Target: "owner:ada"}); err != nil {
			t.Fatal(err)
		}
	})
	before := string(readFile(t, saved))
	r := restore(t, saved, path)
	if r.From != r.Schema || r.Rows["pets"] != 1 {
		t.Errorf("Restore = %+v, want 1 pet", r)
	}
	do(t, path, func(s *sqlite.Store) {
		if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10}); err != nil || len(pets) != 1 || pets[0].Name != "Rex" {
			t.Errorf("the pets are %v (%v), want that of the backup", pets, err)
		}
		if pet := addPet(t, s, "Ben"); pet.ID != 3 {
			t.Errorf("the next pet has ID %d, want 3: 2 was given before", pet.ID)
		}
		want := []store.AuditEntry{
			{At: later, Actor: operator.Name, Action: "database.restore", Target: saved,
				Detail: fmt.Sprintf(`replaced=%q keys_ended="0" keys_unknown="0" keys_gone="0"`, r.Replaced)},
			{At: now, Actor: "admin", Action: "ban.end", Target: "owner:ada"},
		}
		got, err := s.ListAudit(t.Context(), store.AuditQuery{Limit: 10})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got, cmpopts.IgnoreFields(store.AuditEntry{}, "ID")); diff != "" {
			t.Errorf("the audit log (-want +got):\n%s", diff)
		}
	})
	do(t, r.Replaced, func(s *sqlite.Store) {
		if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10}); err != nil || len(pets) != 2 {
			t.Errorf("the pets of the replaced file are %v (%v), want both", pets, err)
		}
	})
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
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files beside the database (-want +got):\n%s", diff)
	}
}
