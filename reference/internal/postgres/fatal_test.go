//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// impatient returns the URL of a database whose sessions end when they are idle in a
// transaction for 100 ms. It has been upgraded without that, which may take as long on a
// busy machine.
func impatient(t *testing.T) string {
	t.Helper()
	url := postgrestest.Database(t)
	open(t, url, postgres.Options{}).Close()
	return url + "&idle_in_transaction_session_timeout=100"
}

// A server that ends sessions which are idle in a transaction ends one whose process was
// stopped for a moment. Before the commit nothing is stored, so the call is repeated.
func TestASessionThatIsEndedInATransaction(t *testing.T) {
	url := impatient(t)
	s := open(t, url, postgres.Options{})
	attempts := 0
	pauses := func(n int) store.Condition {
		attempts = 0
		return func(list func(store.ListQuery) ([]store.Pet, bool, error)) (bool, error) {
			if attempts++; attempts <= n {
				time.Sleep(400 * time.Millisecond)
			}
			_, _, err := list(store.ListQuery{Limit: 1})
			return true, err
		}
	}
	if _, _, err := s.CreatePetIf(context.Background(), store.NewPet{Name: "Rex"}, nil, pauses(1)); err != nil || attempts != 2 {
		t.Errorf("CreatePetIf = %v after %d attempts, want nil after 2", err, attempts)
	}
	_, _, err := s.CreatePetIf(context.Background(), store.NewPet{Name: "Rex"}, nil, pauses(9))
	checkUnavailable(t, err)
	if n := query[int](t, url, "SELECT count(*)::int FROM pets"); n != 1 {
		t.Errorf("%d pets are stored, want 1", n)
	}
}

// The same before the commit: the server says FATAL, and it can be that of a pooler, which
// does not say whether it passed the commit on.
func TestASessionThatIsEndedBeforeItsCommit(t *testing.T) {
	p := through(t, impatient(t))
	s := open(t, p.url, postgres.Options{})
	p.slow(func(b []byte) time.Duration {
		if bytes.Contains(b, []byte("commit")) {
			return 400 * time.Millisecond
		}
		return 0
	})
	_, _, err := s.CreatePetIf(context.Background(), store.NewPet{Name: "Rex"}, nil, always)
	checkUnavailable(t, err, "the outcome is unknown")
}

// An answer that cannot be read does not say whether the pet is stored.
func TestAnAnswerThatCannotBeRead(t *testing.T) {
	p := through(t, postgrestest.Database(t))
	s := open(t, p.url, postgres.Options{})
	for n := range 40 {
		eventually(t, "a connection is ready", func() error {
			_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
			return err
		})
		p.garble(toClient, n)
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		checkUnavailable(t, err, "the outcome is unknown")
	}
}
