//go:build unix

package postgres_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
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

// An answer that cannot be read does not say whether the pet is stored. A call that only
// reads is repeated with another connection.
func TestAnAnswerThatCannotBeRead(t *testing.T) {
	p := through(t, postgrestest.Database(t))
	s := open(t, p.url, postgres.Options{})
	for n := range 40 {
		var pet store.Pet
		eventually(t, "a connection is ready", func() (err error) {
			pet, err = s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
			return err
		})
		p.garble(toClient, n)
		if got, err := s.Pet(t.Context(), pet.ID); err != nil || got != pet {
			t.Errorf("Pet, with garbage after %d bytes = %v, %v, want %v", n, got, err, pet)
		}
		p.garble(toClient, n)
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		checkUnavailable(t, err, "the outcome is unknown")
	}
}

// Another server behind the address of the database, or a proxy that breaks its answers, is
// a database that is not there.
func TestAServerThatIsNotPostgreSQL(t *testing.T) {
	const ready = "R\x00\x00\x00\x08\x00\x00\x00\x00Z\x00\x00\x00\x05I" // the session has begun
	for name, answers := range map[string][]string{
		"closes":                     {""},
		"is one of HTTP":             {"HTTP/1.1 400 Bad Request\r\n\r\n"},
		"answers with another one":   {ready, "HTTP/1.1 400 Bad Request\r\n\r\n"},
		"has no such message":        {ready, strings.Repeat("\xff", 64)},
		"breaks a message off":       {ready, "1\x00\x00\x00\x04T\x00\x00"},
		"has a message of no length": {ready, "1\x00\x00\x00\x00"},
		"sends the wrong message":    {ready, "G\x00\x00\x00\x07\x00\x00\x00"},
		"has an error of nothing":    {ready, "E\x00\x00\x00\x05\x00Z\x00\x00\x00\x05I"},
		"has an error without code":  {ready, "E\x00\x00\x00\x09Mhi\x00\x00Z\x00\x00\x00\x05I"},
	} {
		t.Run(name, func(t *testing.T) {
			p := through(t, postgrestest.Database(t))
			s := open(t, p.url+"&pool_max_conns=1", postgres.Options{})
			p.redirect(answering(t, answers))
			for what, call := range map[string]func() error{
				"Pet":      func() error { _, err := s.Pet(t.Context(), 1); return err },
				"ListPets": func() error { _, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 1}); return err },
				"CreatePet": func() error {
					_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
					return err
				},
				"CreatePetIf": func() error {
					_, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, nil, always)
					return err
				},
			} {
				if err := call(); !errors.Is(err, store.ErrUnavailable) {
					t.Errorf("%s = %v, want an error that wraps ErrUnavailable", what, err)
				}
			}
		})
	}
}

// answering starts a server that sends one of the answers after each read, and returns its
// address.
func answering(t *testing.T, answers []string) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				buffer := make([]byte, 64<<10)
				for _, answer := range answers {
					if _, err := conn.Read(buffer); err != nil {
						return
					}
					if _, err := io.WriteString(conn, answer); err != nil {
						return
					}
				}
			}()
		}
	}()
	return l.Addr().String()
}
