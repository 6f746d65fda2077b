//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// exportOf returns an export of n pets and one key, and calls before ahead of each pet.
func exportOf(n int64, before func(i int64) error) store.Export {
	pets := func(yield func([]any, error) bool) {
		for i := int64(1); i <= n; i++ {
			err := before(i)
			if !yield([]any{i, fmt.Sprint(i), i, "sold"}, err) || err != nil {
				return
			}
		}
	}
	return store.Export{From: "/pets.db", Tables: []store.Table{
		{Name: "pets", Columns: []string{"id", "name", "category_id", "status"}, LastID: n + 5, Rows: pets},
		requestOf(n),
		{Name: "keys", Columns: []string{"id", "digest", "last_four", "name", "owner", "plan", "quotas", "limits", "created"},
			Rows: row("key_1", make([]byte, 32), "abcd", "n", "ada", "free", []string{}, []string{}, noon)},
		{Name: "audit", Columns: []string{"id"}, LastID: 9, Rows: row()},
		{Name: "daily_use", Columns: []string{"day"}, Rows: row()},
		{Name: "deprecated_use", Columns: []string{"owner"}, Rows: row()},
		{Name: "deprecated_use_by_day", Columns: []string{"day"}, Rows: row()},
	}}
}

// requestOf is the table of idempotency keys with that of one pet.
func requestOf(pet int64) store.Table {
	return store.Table{Name: "idempotency_keys", Columns: []string{"owner", "key", "fingerprint", "pet", "at"},
		Rows: row("ada", "k", make([]byte, 32), pet, noon)}
}

// row is a table with one row, or without any.
func row(values ...any) iter.Seq2[[]any, error] {
	return func(yield func([]any, error) bool) {
		if len(values) > 0 {
			yield(values, nil)
		}
	}
}

func nothing(int64) error { return nil }

var importer = store.Actor{Name: "cli:ada@host"}

// checkEmpty checks that a failed import has left nothing, by importing again.
func checkEmpty(t *testing.T, s *postgres.Store) {
	t.Helper()
	copied, err := s.Import(t.Context(), exportOf(10, nothing), importer, noon)
	if err != nil || copied["pets"] != 10 || copied["keys"] != 1 {
		t.Fatalf("after a failed import, Import = %v, %v, want 10 pets and a key", copied, err)
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
	const n = 20_000
	errSource := errors.New("the file cannot be read")
	for name, tt := range map[string]struct {
		end    func(t *testing.T, url string, cancel func()) error // in the middle
		change func(store.Export)
		is     error // of those that callers branch on
		want   string
	}{
		"its source fails": {end: func(*testing.T, string, func()) error { return errSource }, is: errSource, want: "the file cannot be read"},
		"it is interrupted": {end: func(_ *testing.T, _ string, cancel func()) error {
			cancel()
			return nil
		}, is: context.Canceled, want: "context canceled"},
		"its connection is lost": {end: func(t *testing.T, url string, _ func()) error {
			postgrestest.Exec(t, url, "SELECT pg_terminate_backend(pid, 30000) FROM pg_stat_activity WHERE application_name = 'petstore' AND datname = current_database()")
			return nil
		}, is: store.ErrUnavailable},
		"a row is refused":  {change: func(x store.Export) { x.Tables[1] = requestOf(n + 1) }, want: "idempotency_keys"},
		"a text is refused": {change: func(x store.Export) { x.Tables[0].Rows = row(1, "a\x00", 1, "sold") }, want: "SQLSTATE 22021"},
	} {
		t.Run(name, func(t *testing.T) {
			url := postgrestest.Database(t)
			s := open(t, url, postgres.Options{})
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			x := exportOf(n, func(i int64) error {
				if i == n-1000 && tt.end != nil {
					return tt.end(t, url, cancel)
				}
				return nil
			})
			if tt.change != nil {
				tt.change(x)
			}
			_, err := s.Import(ctx, x, importer, noon)
			checkText(t, err, "copy the rows: ", tt.want)
			for _, kind := range []error{errSource, context.Canceled, store.ErrUnavailable, store.ErrNotFound} {
				if errors.Is(err, kind) != (kind == tt.is) {
					t.Errorf("Import = %v, want an error that wraps %v alone", err, tt.is)
				}
			}
			checkEmpty(t, s)
		})
	}
}

// The user of the servers cannot import if it does not own the tables.
func TestImportNeedsTheOwner(t *testing.T) {
	url := postgrestest.Database(t)
	open(t, url, postgres.Options{})
	s := open(t, fewRights(t, url, "SELECT, INSERT, UPDATE, DELETE"), postgres.Options{NoMigrate: true})
	_, err := s.Import(t.Context(), exportOf(10, nothing), importer, noon)
	checkText(t, err, "copy the rows: ", "to migrate or import, use the owner of the tables")
	if strings.Contains(err.Error(), "unavailable") {
		t.Errorf("the error says that a retry can succeed: %v", err)
	}
	checkEmpty(t, open(t, url, postgres.Options{}))
}

// While an import runs, other servers can read, and writes wait until it is done.
func TestImportBesideAServer(t *testing.T) {
	url := postgrestest.Database(t)
	s, other := open(t, url, postgres.Options{}), open(t, url, postgres.Options{})
	rex, key := store.NewPet{Name: "Rex"}, store.NewKey{Digest: store.Digest{2}, LastFour: "abcd", Name: "n", Owner: "bob", Plan: "free", Created: noon}
	writes := map[string]func() error{
		"CreatePet": func() error { _, err := other.CreatePet(t.Context(), rex); return err },
		"CreatePetOnce": func() error {
			_, _, err := other.CreatePetOnce(t.Context(), rex, store.IdempotencyKey{Owner: "bob", Key: "k", At: noon})
			return err
		},
		"CreateKey": func() error { _, err := other.CreateKey(t.Context(), key, importer); return err },
		"CreateFirstKey": func() error { // of a server that starts
			first := key
			first.Digest[0]++
			if _, err := other.CreateFirstKey(t.Context(), first, importer); !errors.Is(err, store.ErrExists) {
				return fmt.Errorf("the error is %w, want ErrExists", err)
			}
			return nil
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
	done := make(chan error, len(writes))
	_, err := s.Import(t.Context(), exportOf(1000, func(i int64) error {
		if i != 500 {
			return nil
		}
		if pets, _, err := other.ListPets(t.Context(), store.ListQuery{Limit: 10}); err != nil || len(pets) > 0 {
			t.Errorf("while an import runs, ListPets = %v, %v, want no pets", pets, err)
		}
		for name, write := range writes {
			go func() {
				err := write()
				if err != nil {
					err = fmt.Errorf("%s beside an import: %w", name, err)
				}
				done <- err
			}()
		}
		return waiting(t.Context(), url, len(writes))
	}), importer, noon)
	must(t, err)
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
	end := begin(t, url, "INSERT INTO daily_use VALUES ('ada', '2026-05-04', 1, 1)")
	done := make(chan error)
	go func() {
		_, err := s.Import(t.Context(), exportOf(10, nothing), importer, noon)
		done <- err
	}()
	if err := waiting(t.Context(), url, 1); err != nil {
		t.Error(err)
	}
	end("COMMIT")
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
