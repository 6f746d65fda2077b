//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// While an import runs, other servers can read, and writes wait until it is done.
func TestImportBesideAServer(t *testing.T) {
	url := postgrestest.Database(t)
	s, other := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	writes := map[string]func() error{
		"CreatePet": func() error { _, err := other.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); return err },
		"CreatePetIf": func() error {
			_, _, err := other.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, nil, func(list func(store.ListQuery) ([]store.Pet, bool, error)) (bool, error) {
				pets, _, err := list(store.ListQuery{Limit: 1})
				if err == nil && len(pets) == 0 {
					err = errors.New("a condition does not see the pets of the import")
				}
				return true, err
			})
			return err
		},
		"CreatePetIf with a key": func() error {
			_, replayed, err := other.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, new(store.IdempotencyKey{Owner: "bob", Key: "k", At: noon}), nil)
			if replayed {
				err = errors.New("it was replayed")
			}
			return err
		},
		"CreateKey": func() error {
			_, err := other.CreateKey(t.Context(), store.NewKey{Digest: store.Digest{2}, LastFour: "abcd", Name: "n", Owner: "bob", Plan: "free", Created: noon}, importer)
			return err
		},
		"AddAudit": func() error {
			return other.AddAudit(t.Context(), store.AuditEntry{At: noon, Actor: "bob", Action: "ban.end", Target: "bob"})
		},
		"AddDailyUse": func() error {
			return other.AddDailyUse(t.Context(), store.DailyUse{Owner: "bob", Day: store.Day(noon), Allowed: 1})
		},
		"AddDeprecatedUse": func() error {
			return other.AddDeprecatedUse(t.Context(), store.DeprecatedUse{Operation: "getPet", Owner: "bob", Count: 1, Last: noon})
		},
	}
	done := make(chan error, len(writes)+1)
	_, _, err := s.Import(t.Context(), exportOf(1000, func(i int64) error {
		if i != 500 {
			return nil
		}
		if pets, _, err := other.ListPets(t.Context(), store.ListQuery{Limit: 10}); err != nil || len(pets) > 0 {
			t.Errorf("while an import runs, ListPets = %v, %v, want no pets", pets, err)
		}
		for name, write := range writes {
			go func() {
				if err := write(); err != nil {
					done <- fmt.Errorf("%s beside an import: %w", name, err)
					return
				}
				done <- nil
			}()
		}
		go func() { // of a server that starts
			_, err := other.CreateFirstKey(t.Context(), store.NewKey{Digest: store.Digest{3}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "free", Created: noon}, importer)
			if errors.Is(err, store.ErrExists) {
				err = nil
			}
			done <- err
		}()
		return waiting(t.Context(), url, len(writes)+1)
	}), importer, noon)
	if err != nil {
		t.Fatalf("Import = %v", err)
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	entries, err := s.ListAudit(t.Context(), store.AuditQuery{Limit: 10})
	if err != nil || len(entries) != 3 {
		t.Errorf("the audit log has %v (%v), want entries of the import, a key and a ban", entries, err)
	}
	for _, e := range entries {
		if e.ID <= 9 || e.Action == store.DatabaseImport && e.ID != entries[len(entries)-1].ID {
			t.Errorf("the audit log is %v, want the import before the writes that waited, and IDs over 9", entries)
		}
	}
}

// An import sees what is committed while it waits for its locks, whatever isolation is the
// default of the database.
func TestImportAfterAWriteThatHasBegun(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url+"&default_transaction_isolation=serializable", postgres.Options{})
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if _, err := conn.Exec(t.Context(), "BEGIN; INSERT INTO daily_use VALUES ('ada', '2026-05-04', 1, 1)"); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, _, err := s.Import(t.Context(), exportOf(10, nothing), importer, noon)
		done <- err
	}()
	if err := waiting(t.Context(), url, 1); err != nil {
		t.Error(err)
	}
	if _, err := conn.Exec(t.Context(), "COMMIT"); err != nil {
		t.Error(err)
	}
	if err := <-done; !errors.Is(err, postgres.ErrNotEmpty) {
		t.Errorf("Import = %v, want an error that wraps ErrNotEmpty", err)
	}
}

// waiting returns when n statements on a database wait for a lock. It is called during an
// import, which must end before the test can.
func waiting(ctx context.Context, url string, n int) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	defer conn.Close(context.Background())
	got := 0
	for begin := time.Now(); time.Since(begin) < time.Minute; time.Sleep(20 * time.Millisecond) {
		if err := conn.QueryRow(ctx, `SELECT count(*) FROM pg_stat_activity
			WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(&got); err != nil || got == n {
			return err
		}
	}
	return fmt.Errorf("%d statements wait for a lock, want %d", got, n)
}
