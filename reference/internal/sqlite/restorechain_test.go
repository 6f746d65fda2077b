package sqlite_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A chain of restores knows what an earlier one has removed.
func TestRestoreOfAnotherBackupKeepsEndsOfKeys(t *testing.T) {
	path := tempDatabase(t)
	do(t, path, func(s *sqlite.Store) { addPet(t, s, "Rex") })
	first := backup(t, path)
	var revoked, rotated, atOnce store.Key
	do(t, path, func(s *sqlite.Store) { revoked, rotated, atOnce = addKey(t, s, 1), addKey(t, s, 2), addKey(t, s, 3) })
	second := backup(t, path)
	do(t, path, func(s *sqlite.Store) {
		if _, err := s.RevokeKey(t.Context(), revoked.ID, now, operator); err != nil {
			t.Fatal(err)
		}
		rotate(t, s, rotated, 4, now.Add(10*time.Minute), 20*time.Minute)
		rotate(t, s, atOnce, 5, now.Add(time.Millisecond), 0)
	})
	restore(t, first, path)
	r, err := sqlite.Restore(t.Context(), second, path, operator, later.Add(time.Second), sqlite.Options{})
	if err != nil || len(r.Problems) > 0 {
		t.Fatalf("Restore = %+v, %v", r, err)
	}
	ended := []string{revoked.ID, rotated.ID, atOnce.ID}
	slices.Sort(ended)
	checkIDs(t, "keys that end sooner", r.Ended, ended...)
	checkIDs(t, "keys that the replaced file does not have", r.Unknown)
	if report, err := sqlite.Check(t.Context(), path, sqlite.Options{}); err != nil || len(report.Problems) > 0 {
		t.Errorf("Check = %+v, %v, want a sound file", report, err)
	}
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
	for name, want := range map[string]string{"tab\t.db": `tab\t.db"`, "octet\xff.db": `octet\xff.db"`, "plain.db": "plain.db"} {
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
