//go:build unix

package postgres_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A commit that no synchronous standby has confirmed can be seen on the primary once its
// wait was canceled. What a caller learns when it repeats the call must be on the standby
// nevertheless, since a failover would lose it.
func TestARepeatedCallWaitsForTheStandby(t *testing.T) {
	testenv.Long(t, "waits for a standby")
	t.Parallel()
	primary := postgrestest.Start(t)
	admin := store.Actor{Name: "admin"}
	key, err := open(t, primary.URL("postgres"), postgres.Options{}).CreateKey(t.Context(), store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}, admin)
	if err != nil {
		t.Fatal(err)
	}
	s := openSoon(t, primary.URL("postgres"), postgres.Options{Timeout: short})
	standby := primary.StartStandby()
	primary.Synchronous()
	once := func() (store.Pet, error) {
		pet, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, new(store.IdempotencyKey{Owner: "ada", Key: "1", At: noon}), nil)
		return pet, err
	}
	revoke := func() (store.Key, error) { return s.RevokeKey(t.Context(), key.ID, noon, admin) }

	standby.Stop()
	for range 3 {
		unconfirmed(t, "CreatePetIf", func() error { _, err := once(); return err })
		unconfirmed(t, "RevokeKey", func() error { _, err := revoke(); return err })
	}

	standby.Restart()
	var pet store.Pet
	eventually(t, "the repeated calls succeed", func() (err error) {
		if pet, err = once(); err == nil {
			_, err = revoke()
		}
		return err
	})
	primary.Kill()
	standby.Promote()
	promoted := open(t, standby.URL("postgres"), postgres.Options{})
	if got, err := promoted.Pet(t.Context(), pet.ID); err != nil || got != pet {
		t.Errorf("after the failover Pet = %v, %v, want %v", got, err, pet)
	}
	if got, err := promoted.Key(t.Context(), key.ID); err != nil || got.Revoked.IsZero() {
		t.Errorf("after the failover the key is %v, %v, want one that is revoked", got, err)
	}
}

// unconfirmed has a call wait for a standby that is not there. On a busy machine it may first
// fail before its commit.
func unconfirmed(t *testing.T, name string, call func() error) {
	t.Helper()
	eventually(t, name+" waits for the standby", func() error {
		err := call()
		switch checkUnavailable(t, err); {
		case err == nil:
			t.Fatalf("%s = nil, and no standby has what it stored", name)
		case !strings.Contains(err.Error(), "the outcome is unknown"):
			return err
		}
		return nil
	})
}

// If an operator cancels the wait of a commit for the standby, the server says that the
// commit is done, and warns that the standby may not have it.
func TestACanceledWaitForTheStandbyIsNoAnswer(t *testing.T) {
	testenv.Long(t, "waits for a standby")
	t.Parallel()
	primary := postgrestest.Start(t)
	s := open(t, primary.URL("postgres"), postgres.Options{Timeout: time.Minute})
	primary.Exec("postgres", "CREATE DATABASE empty")
	empty := open(t, primary.URL("empty"), postgres.Options{})
	standby := primary.StartStandby()
	primary.Synchronous()
	standby.Stop()
	for name, create := range map[string]func() error{
		"CreatePet": func() error {
			_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
			return err
		},
		"CreatePetIf": func() error {
			_, _, err := s.CreatePetIf(t.Context(), store.NewPet{Name: "Rex"}, new(store.IdempotencyKey{Owner: "ada", Key: "1", At: noon}), nil)
			return err
		},
		"Import": func() error {
			_, _, err := empty.Import(t.Context(), exportOf(10, nothing), importer, noon)
			return err
		},
	} {
		done := make(chan error)
		go func() { done <- create() }()
		eventually(t, "the wait is canceled", func() error {
			n := query[int](t, primary.URL("postgres"), "SELECT count(pg_cancel_backend(pid))::int FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
			if n == 0 {
				return errors.New("no commit waits")
			}
			return nil
		})
		if err := <-done; err == nil {
			t.Errorf("%s = nil, and no standby has the pet", name)
		} else {
			checkUnavailable(t, err, "the outcome is unknown", "its standby has not confirmed the commit")
		}
	}
	standby.Restart()
	create(t, s)
}
