package sqlite

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestUpgradeFromEveryVersion(t *testing.T) {
	latest := int64(len(content))
	if sources, err := fs.Glob(migrations, mainSchema.folder+"/*.sql"); err != nil || len(sources) != len(content) {
		t.Fatalf("there are %d migrations (%v), and content for %d; add what the last one makes it possible to store", len(sources), err, len(content))
	}
	for version := range latest + 1 {
		t.Run(fmt.Sprintf("version %d", version), func(t *testing.T) {
			path := filepath.Join(t.TempDir(), "pets.db")
			migrateTo(t, path, mainSchema, version)
			var upgrades []Upgrade
			o := Options{OnUpgrade: func(u Upgrade) { upgrades = append(upgrades, u) }}

			// Twice: the second time there is nothing to do.
			for range 2 {
				s, err := Open(t.Context(), path, o)
				if err != nil {
					t.Fatalf("Open = %v", err)
				}
				checkContent(t, s, version)
				if got := s.version(t); got != latest {
					t.Errorf("the schema has version %d, want %d", got, latest)
				}
				if err := s.Close(); err != nil {
					t.Errorf("Close = %v", err)
				}
			}
			if r, err := Check(t.Context(), path, Options{}); err != nil || len(r.Problems) > 0 {
				t.Errorf("Check after the upgrade = %+v, %v, want a sound file", r, err)
			}
			if version == 0 || version == latest {
				if len(upgrades) > 0 || len(copies(t, path)) > 0 {
					t.Errorf("upgrades are %v and copies %v, want none", upgrades, copies(t, path))
				}
				return
			}
			if len(upgrades) != 1 || len(copies(t, path)) != 1 {
				t.Fatalf("upgrades are %v and copies %v, want one", upgrades, copies(t, path))
			}
			want := Upgrade{File: path, From: version, To: latest, Copy: copies(t, path)[0]}
			if diff := cmp.Diff(want, upgrades[0]); diff != "" {
				t.Errorf("the upgrade (-want +got):\n%s", diff)
			}
			checkCopy(t, want, version)
		})
	}
}

func copies(t *testing.T, path string) []string {
	t.Helper()
	// Also those that are not complete.
	found, err := filepath.Glob(path + ".v*")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// checkContent checks that a store has what a version could store.
func checkContent(t *testing.T, s *Store, version int64) {
	t.Helper()
	at := time.Unix(1, 0).UTC()
	check := func(since int64, what string, want, got any, err error) {
		t.Helper()
		if version < since {
			return
		}
		if err != nil {
			t.Errorf("%s: %v", what, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s of the older version (-want +got):\n%s", what, diff)
		}
	}
	rex := store.Pet{ID: 1, Name: "Rex", CategoryID: 1, Status: store.Sold}
	pet, err := s.Pet(t.Context(), 1)
	check(1, "the pet", rex, pet, err)

	var digest store.Digest
	for i := range digest {
		digest[i] = 7
	}
	key, err := s.KeyByDigest(t.Context(), digest)
	wantKey := store.Key{ID: "key_1", NewKey: store.NewKey{
		Digest: digest, LastFour: "abcd", Name: "laptop", Owner: "ada", Plan: "free", Created: at,
	}, Revoked: at.Add(time.Second)}
	if version >= 7 {
		wantKey.Limits = []string{"5/minute"}
	}
	check(2, "the key", wantKey, key, err)

	uses, err := s.ListDeprecatedUse(t.Context(), at)
	check(3, "the deprecated use", []store.DeprecatedUse{{Operation: "getPet", Owner: "ada", Count: 7, Last: at}}, uses, err)
	entries, err := s.ListAudit(t.Context(), store.AuditQuery{Limit: 10})
	check(4, "the audit log", []store.AuditEntry{
		{ID: 1, At: at, Actor: "admin", Action: "ban.end", Target: "owner:ada"},
	}, entries, err)
	days, err := s.ListDailyUse(t.Context(), "ada", time.Time{})
	check(5, "the daily use", []store.DailyUse{{Owner: "ada", Day: store.Day(at), Allowed: 5, Denied: 6}}, days, err)
	if version >= 6 {
		again, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Tom"}, new(store.IdempotencyKey{Owner: "ada", Key: "k", At: at}), nil)
		check(6, "the idempotency key", rex, again, err)
	}
}

// checkCopy checks that the older version of the program could use the copy of an
// upgrade, and has the content of a version.
func checkCopy(t *testing.T, u Upgrade, version int64) {
	t.Helper()
	if info, err := os.Stat(u.Copy); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the copy has mode %v (%v), want 0600", info.Mode(), err)
	}
	f, err := newFile(u.Copy, time.Second)
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.connect(1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if version, err := f.inspect(t.Context(), db, mainSchema); err != nil || version != u.From {
		t.Errorf("the copy has version %d (%v), want %d", version, err, u.From)
	}
	if got := (inPool{db}).scan(t, "PRAGMA integrity_check"); got != "ok" {
		t.Errorf("integrity_check of the copy is %s", got)
	}
	// A restored copy is upgraded like any other file.
	again := filepath.Join(t.TempDir(), "again.db")
	if err := os.Rename(u.Copy, again); err != nil {
		t.Fatal(err)
	}
	s, err := Open(t.Context(), again, Options{})
	if err != nil {
		t.Fatalf("Open of the copy = %v", err)
	}
	defer s.Close()
	checkContent(t, s, version)
}

func TestHandlesUpgradeTogether(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pets.db")
	migrateTo(t, path, mainSchema, 3)
	var mu sync.Mutex
	var upgrades []Upgrade
	o := Options{OnUpgrade: func(u Upgrade) {
		mu.Lock()
		defer mu.Unlock()
		upgrades = append(upgrades, u)
	}}
	var wg sync.WaitGroup
	for range 6 {
		wg.Go(func() {
			s, err := Open(context.Background(), path, o)
			if err != nil {
				t.Errorf("Open = %v", err)
				return
			}
			checkContent(t, s, 3)
			if err := s.Close(); err != nil {
				t.Errorf("Close = %v", err)
			}
		})
	}
	wg.Wait()
	if len(upgrades) == 0 {
		t.Error("there is no copy")
	}
	for _, u := range upgrades {
		checkCopy(t, u, 3) // its schema may be newer, if another handle was between two steps
	}
	if left := copies(t, path); len(left) > 0 { // checkCopy has moved the others
		t.Errorf("copies %v are left that nobody knows of", left)
	}
}
