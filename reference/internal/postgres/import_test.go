//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// exportOf returns an export of n pets and one key, and calls before ahead of each pet.
func exportOf(n int64, before func(i int64) error) store.Export {
	return store.Export{
		From: "/pets.db", LastPet: n + 5, LastAudit: 9,
		Pets: func(yield func(store.Pet, error) bool) {
			for i := int64(1); i <= n; i++ {
				err := before(i)
				if !yield(store.Pet{ID: i, Name: fmt.Sprint(i), CategoryID: i, Status: store.Sold}, err) || err != nil {
					return
				}
			}
		},
		Keys: rows(store.Key{ID: "key_1", NewKey: store.NewKey{
			Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "ada", Plan: "free", Created: noon,
		}}),
		Audit:              rows[store.AuditEntry](),
		DailyUse:           rows[store.DailyUse](),
		DeprecatedUse:      rows[store.DeprecatedUse](),
		DeprecatedUseByDay: rows[store.DeprecatedUse](),
		IdempotentRequests: rows(store.IdempotentRequest{
			IdempotencyKey: store.IdempotencyKey{Owner: "ada", Key: "k", At: noon}, Pet: n,
		}),
	}
}

func rows[T any](all ...T) iter.Seq2[T, error] {
	return func(yield func(T, error) bool) {
		for _, row := range all {
			if !yield(row, nil) {
				return
			}
		}
	}
}

func nothing(int64) error { return nil }

var importer = store.Actor{Name: "cli:ada@host"}

// checkEmpty checks that a failed import has left nothing, by importing again.
func checkEmpty(t *testing.T, s *postgres.Store) {
	t.Helper()
	pets, keys, err := s.Import(t.Context(), exportOf(10, nothing), importer, noon)
	if err != nil || pets != 10 || keys != 1 {
		t.Fatalf("after a failed import, Import = %d, %d, %v, want 10 pets and a key", pets, keys, err)
	}
	if pet := create(t, s); pet.ID <= 15 {
		t.Errorf("a pet got the ID %d, which another one had, want more than 15", pet.ID)
	}
}

func TestImportModes(t *testing.T) {
	for name, of := range map[string]func(t testing.TB, url string) string{
		"defaults":               func(_ testing.TB, url string) string { return url },
		"no prepared statements": func(_ testing.TB, url string) string { return url + "&default_query_exec_mode=exec" },
		"simple protocol":        func(_ testing.TB, url string) string { return url + "&default_query_exec_mode=simple_protocol" },
		"a pooler": func(t testing.TB, url string) string {
			return postgrestest.Pooled(t, url) + "&default_query_exec_mode=exec"
		},
	} {
		t.Run(name, func(t *testing.T) {
			url := postgrestest.Database(t)
			open(t, url, postgres.Options{})
			checkEmpty(t, open(t, of(t, url), postgres.Options{NoMigrate: true}))
		})
	}
}

// Whatever ends an import in the middle, nothing of it is left.
func TestImportIsAllOrNothing(t *testing.T) {
	errSource := errors.New("the file cannot be read")
	t.Run("its source fails", func(t *testing.T) {
		s := open(t, postgrestest.Database(t), postgres.Options{})
		_, _, err := s.Import(t.Context(), exportOf(100_000, func(i int64) error {
			if i == 90_000 {
				return errSource
			}
			return nil
		}), importer, noon)
		if err == nil || err.Error() != errSource.Error() {
			t.Errorf("Import = %v, want the error of the source", err)
		}
		checkEmpty(t, s)
	})
	t.Run("it is interrupted", func(t *testing.T) {
		s := open(t, postgrestest.Database(t), postgres.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := s.Import(ctx, exportOf(100_000, func(i int64) error {
			if i == 90_000 {
				cancel()
			}
			return nil
		}), importer, noon)
		if !errors.Is(err, context.Canceled) {
			t.Errorf("Import = %v, want context.Canceled", err)
		}
		checkEmpty(t, s)
	})
	t.Run("it is interrupted, and its connection is closed", func(t *testing.T) {
		server := postgrestest.Start(t)
		s := open(t, server.URL("postgres"), postgres.Options{})
		ctx, cancel := context.WithCancel(t.Context())
		_, _, err := s.Import(ctx, exportOf(100_000, func(i int64) error {
			if i == 90_000 {
				server.Kill()
				cancel()
			}
			return nil
		}), importer, noon)
		if !errors.Is(err, context.Canceled) || errors.Is(err, store.ErrUnavailable) {
			t.Errorf("Import = %v, want context.Canceled alone", err)
		}
	})
	t.Run("the server is killed", func(t *testing.T) {
		server := postgrestest.Start(t)
		s := open(t, server.URL("postgres"), postgres.Options{})
		_, _, err := s.Import(t.Context(), exportOf(100_000, func(i int64) error {
			if i == 90_000 {
				server.Kill()
			}
			return nil
		}), importer, noon)
		checkUnavailable(t, err, "copy the rows: ")
		server.Restart()
		checkEmpty(t, s)
	})
	t.Run("a row is refused", func(t *testing.T) {
		s := open(t, postgrestest.Database(t), postgres.Options{})
		x := exportOf(1000, nothing)
		x.IdempotentRequests = rows(store.IdempotentRequest{IdempotencyKey: store.IdempotencyKey{Owner: "ada", Key: "k", At: noon}, Pet: 1001})
		_, _, err := s.Import(t.Context(), x, importer, noon)
		checkText(t, err, "copy the rows: ", "idempotency_keys")
		checkEmpty(t, s)
	})
	t.Run("a text is refused", func(t *testing.T) {
		s := open(t, postgrestest.Database(t), postgres.Options{})
		x := exportOf(10, nothing)
		x.Pets = rows(store.Pet{ID: 1, Name: "a\x00", Status: store.Sold})
		_, _, err := s.Import(t.Context(), x, importer, noon)
		checkText(t, err, "copy the rows: ", "SQLSTATE 22021")
		if errors.Is(err, store.ErrNotFound) {
			t.Errorf("Import = %v, want no ErrNotFound", err)
		}
		checkEmpty(t, s)
	})
}

// The user of the servers cannot import if it does not own the tables.
func TestImportNeedsTheOwner(t *testing.T) {
	t.Parallel()
	server := postgrestest.Start(t)
	open(t, server.URL("postgres"), postgres.Options{})
	server.Exec("postgres", "CREATE ROLE petstore LOGIN PASSWORD 'secret'", "GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO petstore")
	s := open(t, server.UserURL("petstore", "secret", "postgres"), postgres.Options{NoMigrate: true})
	_, _, err := s.Import(t.Context(), exportOf(10, nothing), importer, noon)
	checkText(t, err, "copy the rows: ", "import as the owner of the tables: ")
	if strings.Contains(err.Error(), "unavailable") {
		t.Errorf("the error says that a retry can succeed: %v", err)
	}
	checkEmpty(t, open(t, server.URL("postgres"), postgres.Options{}))
}
