//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func open(t testing.TB, url string, o postgres.Options) *postgres.Store {
	t.Helper()
	s, err := postgres.Open(t.Context(), url, o)
	if err != nil {
		t.Fatalf("Open = %v", err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

// openSoon is open with timeouts that are too short for a busy machine now and then.
func openSoon(t testing.TB, url string, o postgres.Options) (s *postgres.Store) {
	t.Helper()
	eventually(t, "the database is open", func() (err error) {
		s, err = postgres.Open(t.Context(), url, o)
		return err
	})
	t.Cleanup(func() { s.Close() })
	return s
}

func create(t testing.TB, s *postgres.Store) store.Pet {
	t.Helper()
	pet, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	if err != nil {
		t.Fatalf("CreatePet = %v", err)
	}
	return pet
}

// query returns the only value of a statement's answer.
func query[T any](t testing.TB, url, text string, args ...any) (value T) {
	t.Helper()
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.Background())
	if err := conn.QueryRow(t.Context(), text, args...).Scan(&value); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return value
}

// checkText checks that an error has a text and not the password.
func checkText(t testing.TB, err error, want ...string) {
	t.Helper()
	if err == nil {
		t.Errorf("there is no error, want one with %q", want)
		return
	}
	for _, w := range want {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("the error is %q, want one with %q", err, w)
		}
	}
	if strings.Contains(err.Error(), postgrestest.Password) || strings.Contains(err.Error(), "\n") {
		t.Errorf("the error has a password or a line break: %q", err)
	}
}

// eventually calls do until it returns nil.
func eventually(t testing.TB, what string, do func() error) {
	t.Helper()
	const patience = 2 * time.Minute
	for begin := time.Now(); ; time.Sleep(20 * time.Millisecond) {
		err := do()
		if err == nil {
			return
		}
		if time.Since(begin) > patience {
			t.Fatalf("%s after %v: %v", what, patience, err)
		}
	}
}

// checkUnavailable checks that an error is ErrUnavailable with a text.
func checkUnavailable(t testing.TB, err error, want ...string) {
	t.Helper()
	if !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("the error is %v, want one that wraps ErrUnavailable", err)
	}
	checkText(t, err, want...)
}

// noon is when the requests of the tests arrive.
var noon = time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)
