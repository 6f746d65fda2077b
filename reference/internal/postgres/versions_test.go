//go:build unix

package postgres_test

import (
	"io/fs"
	"maps"
	"testing"
	"testing/fstest"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// with returns the migrations with further ones.
func with(t *testing.T, more map[string]string) fs.FS {
	t.Helper()
	files := fstest.MapFS{}
	own, err := fs.Glob(postgres.Migrations(), "*")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range own {
		content, err := fs.ReadFile(postgres.Migrations(), name)
		if err != nil {
			t.Fatal(err)
		}
		files[name] = &fstest.MapFile{Data: content}
	}
	for name, text := range more {
		files[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return maps.Clone(files)
}

// tomorrow is a program that only adds to the schema.
func tomorrow(t *testing.T) fs.FS {
	return with(t, map[string]string{
		"00002_tomorrow.sql": `-- +goose Up
			ALTER TABLE pets ADD COLUMN note text NOT NULL DEFAULT '';
			CREATE TABLE vets (id bigint PRIMARY KEY);`,
	})
}

// later is a program that removes what the one of tomorrow no longer uses.
func later(t *testing.T) fs.FS {
	return with(t, map[string]string{
		"00002_tomorrow.sql": `-- +goose Up
			ALTER TABLE pets ADD COLUMN note text NOT NULL DEFAULT '';
			CREATE TABLE vets (id bigint PRIMARY KEY);`,
		"00003_later.sql": `-- +goose Up
			UPDATE petstore_schema SET oldest = 2;
			ALTER TABLE pets DROP COLUMN category_id;`,
	})
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
	if err != nil {
		t.Fatal(err)
	}
	defer newer.Close()
	use(newer)
	use(running)
	use(open(t, url, postgres.Options{}))
	use(open(t, url, postgres.Options{NoMigrate: true}))
	if from, to, err := postgres.Migrate(t.Context(), url); from != 2 || to != 2 || err != nil {
		t.Errorf("Migrate of an older program = %d, %d, %v, want 2, 2, nil", from, to, err)
	}

	if from, to, err := postgres.MigrateVersion(t.Context(), url, later(t)); from != 2 || to != 3 || err != nil {
		t.Fatalf("Migrate = %d, %d, %v, want 2, 3, nil", from, to, err)
	}
	const tooOld = "a newer version of this program changed it (schema 3, which needs programs of schema 2 or later; this one knows 1)"
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
