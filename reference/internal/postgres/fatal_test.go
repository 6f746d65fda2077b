//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// impatience is for how long a session of [impatient] may be idle in a transaction. A call
// that finds its own session ended too often, on a busy machine, would fail.
const impatience = 500 * time.Millisecond

// impatient returns the URL of a database that ends sessions which are idle in a transaction,
// and a function after which it ends no new one. It has been upgraded without that.
func impatient(t *testing.T) (url string, patient func()) {
	t.Helper()
	url = postgrestest.Database(t)
	open(t, url, postgres.Options{}).Close()
	alter := "ALTER DATABASE " + query[string](t, url, "SELECT current_database()")
	postgrestest.Exec(t, url, fmt.Sprintf("%s SET idle_in_transaction_session_timeout = %d", alter, impatience.Milliseconds()))
	return url, func() { postgrestest.Exec(t, url, alter+" RESET idle_in_transaction_session_timeout") }
}

// A server that ends sessions which are idle in a transaction ends one whose process was
// stopped for a moment. Before the commit nothing is stored, so the call is repeated.
func TestASessionThatIsEndedInATransaction(t *testing.T) {
	url, patient := impatient(t)
	s := open(t, url, postgres.Options{})
	var attempts, pauses int
	condition := func(list func(store.ListQuery) ([]store.Pet, bool, error)) (bool, error) {
		if attempts++; attempts <= pauses {
			time.Sleep(impatience + 100*time.Millisecond)
		}
		if attempts == pauses {
			patient()
		}
		_, _, err := list(store.ListQuery{Limit: 1})
		return true, err
	}
	pauses = 9
	_, _, err := s.CreatePetIf(context.Background(), store.NewPet{Name: "Rex"}, nil, condition)
	checkUnavailable(t, err)
	attempts, pauses = 0, 1
	if _, _, err := s.CreatePetIf(context.Background(), store.NewPet{Name: "Rex"}, nil, condition); err != nil || attempts != 2 {
		t.Errorf("CreatePetIf = %v after %d attempts, want nil after 2", err, attempts)
	}
	if n := query[int](t, url, "SELECT count(*)::int FROM pets"); n != 1 {
		t.Errorf("%d pets are stored, want 1", n)
	}
}

// The same before the commit: the server says FATAL, and it can be that of a pooler, which
// does not say whether it passed the commit on.
func TestASessionThatIsEndedBeforeItsCommit(t *testing.T) {
	url, _ := impatient(t)
	p := through(t, url)
	s := open(t, p.url, postgres.Options{})
	p.slow(func(b []byte) time.Duration {
		if bytes.Contains(b, []byte("commit")) {
			return impatience + 100*time.Millisecond
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
