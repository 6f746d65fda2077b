//go:build unix

package postgres_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Databases exist that each of these migrations has made, so a migration never changes: a
// change of the schema is another migration, which is added here.
func TestMigrationsNeverChange(t *testing.T) {
	got := map[string]string{}
	if err := fs.WalkDir(postgres.Migrations(), ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		content, err := fs.ReadFile(postgres.Migrations(), path)
		sum := sha256.Sum256(content)
		got[path] = hex.EncodeToString(sum[:8])
		return err
	}); err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"00001_petstore.sql":  "74c0349e26e1bc74",
		"00002_last_used.sql": "e05f90b199b75daa",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("migrations (-want +got):\n%s", diff)
	}
}

func TestMigrate(t *testing.T) {
	url := postgrestest.Database(t)
	_, err := postgres.Open(t.Context(), url, postgres.Options{NoMigrate: true})
	checkText(t, err, "its schema is version 0", "run petstore migrate")
	if n := query[int](t, url, "SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace"); n != 0 {
		t.Errorf("Open with NoMigrate has made %d tables and indexes", n)
	}
	for _, want := range [][2]int64{{0, 2}, {2, 2}} {
		from, to, err := postgres.Migrate(t.Context(), url)
		if got := [2]int64{from, to}; err != nil || got != want {
			t.Errorf("Migrate = %v, %v, want %v", got, err, want)
		}
	}
	s := open(t, url, postgres.Options{NoMigrate: true, OnUpgrade: func(from, to int64) {
		t.Errorf("OnUpgrade(%d, %d) of a new database", from, to)
	}})
	create(t, s)
}

// Servers that start together upgrade the database once, and one of them says so.
func TestUpgradeTogether(t *testing.T) {
	url := postgrestest.Database(t)
	upgrade := func(files fs.FS) (upgrades int32) {
		var n atomic.Int32
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				s, err := postgres.OpenVersion(t.Context(), url, postgres.Options{OnUpgrade: func(from, to int64) {
					if n.Add(1); from != 2 || to != 3 {
						t.Errorf("OnUpgrade(%d, %d), want 2, 3", from, to)
					}
				}}, files)
				if err != nil {
					t.Errorf("Open = %v", err)
					return
				}
				s.Close()
			})
		}
		wg.Wait()
		return n.Load()
	}
	if n := upgrade(postgres.Migrations()); n != 0 {
		t.Errorf("%d servers have upgraded a new database, want none", n)
	}
	if n := upgrade(tomorrow(t)); n != 1 {
		t.Errorf("%d servers have upgraded the database, want 1", n)
	}
}

func TestAFailedUpgradeChangesNothing(t *testing.T) {
	url := postgrestest.Database(t)
	create(t, open(t, url, postgres.Options{}))
	broken := with(t, map[string]string{"00003_broken.sql": "-- +goose Up\nALTER TABLE pets ADD COLUMN note text;\nSELECT 1/0;"})
	for range 2 {
		_, err := postgres.OpenVersion(t.Context(), url, postgres.Options{}, broken)
		checkText(t, err, "upgrade PostgreSQL database", "division by zero")
	}
	if n := query[int](t, url, "SELECT count(*)::int FROM information_schema.columns WHERE column_name = 'note'"); n != 0 {
		t.Error("an upgrade that failed has left a column")
	}
	create(t, open(t, url, postgres.Options{}))
}

func TestADatabaseOfAnotherProgramIsRefused(t *testing.T) {
	for name, tables := range map[string]string{
		"a table":                     "CREATE TABLE customers (id int)",
		"a table with a name of ours": "CREATE TABLE pets (id int)",
		"migrations of goose":         "CREATE TABLE goose_db_version (version_id bigint)",
		"a partitioned table":         "CREATE TABLE p (id int) PARTITION BY RANGE (id)",
	} {
		url := postgrestest.Database(t)
		postgrestest.Exec(t, url, tables)
		const count = "SELECT count(*)::int FROM pg_class WHERE relnamespace = 'public'::regnamespace"
		before := query[int](t, url, count)
		_, err := postgres.Open(t.Context(), url, postgres.Options{})
		checkText(t, err, "the schema public has tables of another program", "choose another")
		_, _, err = postgres.Migrate(t.Context(), url)
		checkText(t, err, "the schema public has tables of another program")
		if after := query[int](t, url, count); after != before {
			t.Errorf("%s: the database has %d tables and indexes, want %d as before", name, after, before)
		}
		// Another schema is free.
		postgrestest.Exec(t, url, "CREATE SCHEMA petstore")
		create(t, open(t, url+"&search_path=petstore", postgres.Options{}))
		if after := query[int](t, url, count); after != before {
			t.Errorf("%s: the schema public has %d tables and indexes, want %d as before", name, after, before)
		}
	}
}

func TestASchemaMustExist(t *testing.T) {
	url := postgrestest.Database(t)
	_, err := postgres.Open(t.Context(), url+"&search_path=nowhere", postgres.Options{})
	checkText(t, err, "no schema of the search_path", "create it")
}

// What reference/docs/POSTGRESQL.md grants is enough for a server that does not migrate.
func TestAUserWithFewRights(t *testing.T) {
	url := postgrestest.Database(t)
	if _, _, err := postgres.Migrate(t.Context(), url); err != nil {
		t.Fatal(err)
	}
	_, err := postgres.Open(t.Context(), fewRights(t, url, "TRIGGER"), postgres.Options{NoMigrate: true})
	checkText(t, err, "permission denied", "lacks rights")
	few := fewRights(t, url, "SELECT, INSERT, UPDATE, DELETE")
	s := open(t, few, postgres.Options{NoMigrate: true})
	pet := create(t, s)
	if _, _, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: "Rex"}, store.IdempotencyKey{Owner: "ada", Key: "k", At: noon}); err != nil {
		t.Errorf("CreatePetOnce = %v", err)
	}
	if got, err := s.Pet(t.Context(), pet.ID); err != nil || got != pet {
		t.Errorf("Pet = %v, %v, want %v", got, err, pet)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping = %v", err)
	}
	for _, table := range []string{"pets", "idempotency_keys", "keys", "audit", "daily_use", "deprecated_use", "deprecated_use_by_day"} {
		_, name, _ := strings.Cut(few, "//")
		user, _, _ := strings.Cut(name, ":")
		postgrestest.Exec(t, url, "REVOKE INSERT ON "+table+" FROM "+user)
		checkUnavailable(t, s.Ping(t.Context()), "lacks rights on its tables")
		postgrestest.Exec(t, url, "GRANT INSERT ON "+table+" TO "+user)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping with the rights again = %v", err)
	}
	_, err = postgres.OpenVersion(t.Context(), few, postgres.Options{}, tomorrow(t))
	checkText(t, err, "upgrade PostgreSQL database", "to migrate or import, use the owner of the tables")
}

var users atomic.Int64

// fewRights returns the URL of a database for a user that has only these rights on its tables.
func fewRights(t *testing.T, url, rights string) string {
	t.Helper()
	name := fmt.Sprint("server", os.Getpid(), "_", users.Add(1))
	postgrestest.Exec(t, url, "CREATE ROLE "+name+" LOGIN PASSWORD 'few-Rights-1'", "GRANT USAGE ON SCHEMA public TO "+name,
		"GRANT "+rights+" ON ALL TABLES IN SCHEMA public TO "+name)
	t.Cleanup(func() { postgrestest.Exec(t, url, "DROP OWNED BY "+name, "DROP ROLE "+name) })
	return strings.Replace(url, "postgres:"+postgrestest.Password+"@", name+":few-Rights-1@", 1)
}

// with returns the migrations with further ones.
func with(t *testing.T, more map[string]string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	for name, text := range more {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	names, err := fs.Glob(postgres.Migrations(), "*")
	must(t, err)
	for _, name := range names {
		content, err := fs.ReadFile(postgres.Migrations(), name)
		must(t, err)
		files[name] = &fstest.MapFile{Data: content}
	}
	return files
}

const tomorrowText = `-- +goose Up
	ALTER TABLE pets ADD COLUMN note text NOT NULL DEFAULT '';
	CREATE TABLE vets (id bigint PRIMARY KEY);`

// tomorrow is a program that only adds to the schema.
func tomorrow(t *testing.T) fs.FS {
	return with(t, map[string]string{"00003_tomorrow.sql": tomorrowText})
}

// later is a program that removes what the one of tomorrow no longer uses.
func later(t *testing.T) fs.FS {
	return with(t, map[string]string{"00003_tomorrow.sql": tomorrowText, "00004_later.sql": `-- +goose Up
		UPDATE petstore_schema SET oldest = 3;
		ALTER TABLE pets DROP COLUMN category_id;`})
}

// A server works while a newer one upgrades the database, and so does one that is started
// after that, as long as the schema allows it.
func TestTwoVersionsSideBySide(t *testing.T) {
	url := postgrestest.Database(t)
	running := open(t, url, postgres.Options{})
	use := func(s *postgres.Store) {
		t.Helper()
		pet := create(t, s)
		if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10, After: pet.ID - 1}); err != nil || len(pets) != 1 || pets[0] != pet {
			t.Errorf("ListPets = %v, %v, want %v", pets, err, pet)
		}
		if err := s.Ping(t.Context()); err != nil {
			t.Errorf("Ping = %v", err)
		}
	}
	use(running)
	newer, err := postgres.OpenVersion(t.Context(), url, postgres.Options{}, tomorrow(t))
	must(t, err)
	defer newer.Close()
	use(newer)
	use(running)
	use(open(t, url, postgres.Options{}))
	use(open(t, url, postgres.Options{NoMigrate: true}))
	if from, to, err := postgres.Migrate(t.Context(), url); from != 3 || to != 3 || err != nil {
		t.Errorf("Migrate of an older program = %d, %d, %v, want 3, 3, nil", from, to, err)
	}

	if from, to, err := postgres.MigrateVersion(t.Context(), url, later(t)); from != 3 || to != 4 || err != nil {
		t.Fatalf("Migrate = %d, %d, %v, want 3, 4, nil", from, to, err)
	}
	const tooOld = "a newer version of this program changed it (schema 4, which needs programs of schema 3 or later; this one knows 2)"
	for _, o := range []postgres.Options{{}, {NoMigrate: true}} {
		_, err = postgres.Open(t.Context(), url, o)
		checkText(t, err, tooOld, "use the newer version")
	}
	_, _, err = postgres.Migrate(t.Context(), url)
	checkText(t, err, tooOld)
	// It was started before, so it is not ready from now on.
	checkUnavailable(t, running.Ping(t.Context()), "a newer version of this program")
	if err := newer.Ping(t.Context()); err != nil {
		t.Errorf("Ping of the newer program = %v", err)
	}
}
