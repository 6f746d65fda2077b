package sqlite

import (
	"bytes"
	"context"
	"crypto/sha256"
	"database/sql"
	"encoding/hex"
	"fmt"
	"io/fs"
	"math"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/pressly/goose/v3"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// content is what each version of the program could store for the first time.
var content = []string{
	`INSERT INTO pets (name, category_id, status) VALUES ('Rex', 1, 'sold')`,
	`INSERT INTO keys (id, digest, last_four, name, owner, plan, quotas, created, expires, revoked)
		VALUES ('key_1', x'` + strings.Repeat("07", 32) + `', 'abcd', 'laptop', 'ada', 'free', '[]', 1000000, NULL, 2000000)`,
	`INSERT INTO deprecated_use (operation, owner, count, last) VALUES ('getPet', 'ada', 7, 1000000)`,
	`INSERT INTO audit (at, actor, source, action, target, detail) VALUES (1000000, 'admin', '', 'ban.end', 'owner:ada', '')`,
	`INSERT INTO daily_use (day, owner, allowed, denied) VALUES (0, 'ada', 5, 6)`,
	`INSERT INTO idempotency_keys (owner, key, fingerprint, pet, at) VALUES ('ada', 'k', zeroblob(32), 1, 1000000)`,
	`UPDATE keys SET limits = '["5/minute"]'`,
	`UPDATE pets SET name = 'Rex'`,
}

// migrateTo makes a database as a version of the program that knew only the
// first migrations would have.
func migrateTo(t *testing.T, path string, s schema, version int64) {
	t.Helper()
	f, err := newFile(path, Options{}.withDefaults().BusyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.connect(1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	folder, err := fs.Sub(migrations, s.folder)
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, folder, goose.WithLogger(goose.NopLogger()))
	if err != nil {
		t.Fatal(err)
	}
	if err := f.useWAL(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	if version > 0 {
		if _, err := provider.UpTo(t.Context(), version); err != nil {
			t.Fatal(err)
		}
		for _, text := range content[:version] {
			if _, err := db.Exec(text); err != nil {
				t.Fatal(err)
			}
		}
	} else if _, err := provider.GetDBVersion(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func (s *Store) version(t *testing.T) int64 {
	t.Helper()
	version, err := s.inspectAlone(t.Context(), mainSchema)
	if err != nil {
		t.Fatal(err)
	}
	return version
}

func TestConnectionsAreSafe(t *testing.T) {
	s := openTest(t)
	u, err := OpenUsage(t.Context(), UsagePath(s.path), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer u.Close()
	const full, normal = "2", "1" // of PRAGMA synchronous
	for _, tt := range []struct {
		connection string
		query      interface {
			scan(t *testing.T, text string) string
		}
		pragma, want string
	}{
		{"pets, writing", inWriter{s}, "journal_mode", "wal"},
		{"pets, writing", inWriter{s}, "synchronous", full},
		{"pets, writing", inWriter{s}, "fullfsync", "1"},
		{"pets, writing", inWriter{s}, "foreign_keys", "1"},
		{"pets, writing", inWriter{s}, "busy_timeout", "5000"},
		{"pets, reading", inPool{s.reads.on.(*sql.DB)}, "query_only", "1"},
		{"pets, reading", inPool{s.reads.on.(*sql.DB)}, "busy_timeout", "5000"},
		{"usage", inPool{u.db}, "journal_mode", "wal"},
		{"usage", inPool{u.db}, "synchronous", normal},
		{"usage", inPool{u.db}, "locking_mode", "exclusive"},
	} {
		if got := tt.query.scan(t, "PRAGMA "+tt.pragma); got != tt.want {
			t.Errorf("%s: PRAGMA %s is %s, want %s", tt.connection, tt.pragma, got, tt.want)
		}
	}
}

type inPool struct{ db *sql.DB }

func (q inPool) scan(t *testing.T, text string) (value string) {
	t.Helper()
	if err := q.db.QueryRowContext(t.Context(), text).Scan(&value); err != nil {
		t.Fatal(err)
	}
	return value
}

type inWriter struct{ s *Store }

func (q inWriter) scan(t *testing.T, text string) (value string) {
	t.Helper()
	if err := q.s.write(t.Context(), "test", func(ctx context.Context) error {
		return q.s.writer.conn.QueryRowContext(ctx, text).Scan(&value)
	}); err != nil {
		t.Fatal(err)
	}
	return value
}

// Latest is the newest version of the schema.
var Latest = int64(len(content))

// MigrateTo makes a database with a version of the schema and the content that it can
// have.
func MigrateTo(t *testing.T, path string, version int64) { migrateTo(t, path, mainSchema, version) }

func TestMigrate(t *testing.T) {
	latest := int64(len(content))
	older := filepath.Join(t.TempDir(), "pets.db")
	migrateTo(t, older, mainSchema, 3)
	for _, tt := range []struct {
		path string
		from int64
	}{
		{filepath.Join(t.TempDir(), "pets.db"), 0}, // there is no file
		{older, 3},
		{older, latest}, // there is nothing to do
	} {
		if from, to, err := Migrate(t.Context(), tt.path, Options{NoMigrate: true}); from != tt.from || to != latest || err != nil {
			t.Errorf("Migrate = %d, %d, %v, want from %d to %d", from, to, err, tt.from, latest)
		}
	}
	s, err := Open(t.Context(), older, Options{NoMigrate: true})
	if err != nil {
		t.Fatalf("Open after Migrate = %v", err)
	}
	defer s.Close()
	checkContent(t, s, 3)
}

// With NoMigrate, Open changes nothing.
func TestOpenWithoutMigration(t *testing.T) {
	latest := int64(len(content))
	for _, version := range []int64{0, 1, latest - 1} {
		path := filepath.Join(t.TempDir(), "pets.db")
		migrateTo(t, path, mainSchema, version)
		_, err := Open(t.Context(), path, Options{NoMigrate: true})
		want := fmt.Sprintf("it has schema %d, this version needs %d, and migrate is manual; run petstore migrate", version, latest)
		if err == nil || !strings.HasSuffix(err.Error(), want) {
			t.Errorf("Open of schema %d = %v, want %q", version, err, want)
		}
		if from, _, err := Migrate(t.Context(), path, Options{}); from != version || err != nil {
			t.Errorf("after Open of schema %d, it is %d, %v", version, from, err)
		}
	}
	path := filepath.Join(t.TempDir(), "pets.db")
	if _, err := Open(t.Context(), path, Options{NoMigrate: true}); err == nil || !strings.HasSuffix(err.Error(), "create it with petstore migrate") {
		t.Errorf("Open of no file = %v, want an error that says what to do", err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); len(files) > 0 || err != nil {
		t.Errorf("Open of no file left %v, %v", files, err)
	}
}

// An upgrade that cannot be done is tried at each start, and must not leave a copy of
// the file each time.
func TestAnUpgradeThatChangesNothingLeavesNoCopy(t *testing.T) {
	path := filepath.Join(t.TempDir(), "pets.db")
	migrateTo(t, path, mainSchema, 3)
	f, err := newFile(path, Options{}.withDefaults().BusyTimeout)
	if err != nil {
		t.Fatal(err)
	}
	db, err := f.connect(1)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	change := func(statement string) {
		t.Helper()
		if _, err := db.Exec(statement); err != nil {
			t.Fatal(err)
		}
	}
	copies := func(want int) {
		t.Helper()
		if got, err := filepath.Glob(path + ".v*.backup"); err != nil || len(got) != want {
			t.Errorf("copies are %v, %v; want %d", got, err, want)
		}
	}
	change("ALTER TABLE goose_db_version ADD COLUMN x CHECK (version_id <> 5)") // stops the second step
	for range 3 {
		if s, err := Open(t.Context(), path, Options{}); err == nil {
			s.Close()
			t.Fatal("Open upgraded a file that refuses it")
		}
	}
	copies(1) // of the file before the first step, which was done
	change("ALTER TABLE goose_db_version DROP COLUMN x")
	s, err := Open(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	s.Close()
	copies(2)
}

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

func TestUsageOfANewerVersionIsRefused(t *testing.T) {
	path := filepath.Join(t.TempDir(), "usage")
	u, err := OpenUsage(t.Context(), path, Options{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := u.db.ExecContext(t.Context(), "INSERT INTO goose_db_version (version_id, is_applied) VALUES (1000, true)"); err != nil {
		t.Fatal(err)
	}
	u.Close()
	want := "use the newer version, or delete the file, which resets all quotas and ends all bans"
	if u, err = OpenUsage(t.Context(), path, Options{}); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("OpenUsage = %v, %v, want an error that says %q", u, err, want)
	}
}

func FuzzRecords(f *testing.F) {
	f.Add(appendRecords(nil, []memory.Record{{Key: 7, Expires: 1, Data: []byte("x")}, {Key: math.MaxUint64}}))
	f.Add([]byte{1, 2, 3})
	f.Add(bytes.Repeat([]byte{0xff}, headSize))
	f.Fuzz(func(t *testing.T, b []byte) {
		records := parseRecords(b, func(uint64) bool { return false })
		again := appendRecords(nil, records)
		if n := len(records); n > 0 && cmp.Equal(records[n-1], damaged) {
			again = appendRecords(nil, records[:n-1])
		}
		if !bytes.HasPrefix(b, again) {
			t.Errorf("%x was read as %v", b, records)
		}
	})
}

// Databases exist that each of these migrations has made, and a check compares them with
// what the migrations make now, comments included. So a migration never changes: a change
// of the schema is another migration, which is added here.
func TestMigrationsNeverChange(t *testing.T) {
	got := map[string]string{}
	folder := os.DirFS("migrations")
	if err := fs.WalkDir(folder, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(folder, path)
		sum := sha256.Sum256(content)
		got[path] = hex.EncodeToString(sum[:8])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"main/00001_pets.sql":             "13fd4589f880331c",
		"main/00002_keys.sql":             "7525d7dbbc154267",
		"main/00003_deprecated_use.sql":   "3ff6a63b7cc192d3",
		"main/00004_audit.sql":            "00744f5b90ec73c1",
		"main/00005_daily_use.sql":        "ee851139853ecbea",
		"main/00006_idempotency_keys.sql": "d60f45709da11180",
		"main/00007_key_limits.sql":       "8310d40d6176d1e8",
		"main/00008_pets_pages.sql":       "141dd1f033e42bdc",
		"usage/00002_usage.sql":           "44572bf3edc1bfee",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("migrations (-want +got):\n%s", diff)
	}
}
