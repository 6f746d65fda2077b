//go:build unix

package postgres_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
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
	must(t, err)
	s := openSoon(t, primary.URL("postgres"), postgres.Options{Timeout: 300 * time.Millisecond})
	standby := primary.StartStandby()
	primary.Synchronous()
	once := func() (store.Pet, error) {
		pet, _, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: "Rex"}, store.IdempotencyKey{Owner: "ada", Key: "1", At: noon})
		return pet, err
	}
	revoke := func() (store.Key, error) { return s.RevokeKey(t.Context(), key.ID, noon, admin) }

	standby.Stop()
	for range 3 {
		unconfirmed(t, "CreatePetOnce", func() error { _, err := once(); return err })
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
		"CreatePetOnce": func() error {
			_, _, err := s.CreatePetOnce(t.Context(), store.NewPet{Name: "Rex"}, store.IdempotencyKey{Owner: "ada", Key: "1", At: noon})
			return err
		},
		"Import": func() error {
			_, err := empty.Import(t.Context(), exportOf(10, nothing), importer, noon)
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
			checkUnavailable(t, err, "the outcome is unknown", "the synchronous standby was canceled")
		}
	}
	standby.Restart()
	create(t, s)
}

// writers create pets until they are stopped. Each pet has its number as category.
type writers struct {
	t    *testing.T
	s    *postgres.Store
	stop chan struct{}
	wg   sync.WaitGroup

	acknowledged atomic.Int64 // pets

	mu      sync.Mutex
	made    map[int64]int64 // number by ID
	refused map[int64]error // by number: stored nothing
	unknown map[int64]bool  // by number
}

func startWriters(t *testing.T, s *postgres.Store, n int) *writers {
	w := &writers{
		t: t, s: s, stop: make(chan struct{}),
		made: map[int64]int64{}, refused: map[int64]error{}, unknown: map[int64]bool{},
	}
	var next atomic.Int64
	for range n {
		w.wg.Go(func() {
			for {
				select {
				case <-w.stop:
					return
				default:
					w.write(next.Add(1))
				}
			}
		})
	}
	return w
}

// write creates a pet in one of the two ways.
func (w *writers) write(n int64) {
	p := store.NewPet{Name: fmt.Sprint(n), CategoryID: n}
	k := store.IdempotencyKey{Owner: "ada", Key: fmt.Sprint(n), At: noon}
	var pet store.Pet
	var err error
	if n%2 == 0 {
		pet, _, err = w.s.CreatePetOnce(context.Background(), p, k)
	} else {
		pet, err = w.s.CreatePet(context.Background(), p)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	switch {
	case err == nil:
		w.made[pet.ID] = n
		w.acknowledged.Add(1)
	case strings.Contains(err.Error(), "the outcome is unknown"):
		w.unknown[n] = true
	default:
		w.refused[n] = err
	}
	if err != nil {
		checkUnavailable(w.t, err)
	}
}

// more waits until n more pets are acknowledged.
func (w *writers) more(n int64) {
	w.t.Helper()
	want := w.acknowledged.Load() + n
	eventually(w.t, "writing goes on", func() error {
		if got := w.acknowledged.Load(); got < want {
			return fmt.Errorf("%d pets are acknowledged, want %d", got, want)
		}
		return nil
	})
}

// check stops the writers and compares what is stored with what was acknowledged.
func (w *writers) check() {
	w.t.Helper()
	close(w.stop)
	w.wg.Wait()
	stored := map[int64]int64{} // ID by number
	q := store.ListQuery{Limit: store.MaxList}
	for more := true; more; {
		var pets []store.Pet
		var err error
		if pets, more, err = w.s.ListPets(context.Background(), q); err != nil {
			w.t.Fatalf("ListPets = %v", err)
		}
		for _, p := range pets {
			if stored[p.CategoryID] != 0 {
				w.t.Errorf("pet %d is stored twice", p.CategoryID)
			}
			stored[p.CategoryID] = p.ID
			q.After = p.ID
			if err, ok := w.refused[p.CategoryID]; ok {
				w.t.Errorf("pet %d is stored, though its write failed with %v", p.CategoryID, err)
			}
			if _, ok := w.made[p.ID]; !ok && !w.unknown[p.CategoryID] {
				w.t.Errorf("pet %d is stored, though its write has neither succeeded nor an unknown outcome", p.CategoryID)
			}
		}
	}
	for id, n := range w.made {
		if stored[n] != id {
			w.t.Errorf("pet %d was acknowledged with ID %d and is stored with ID %d", n, id, stored[n])
		}
	}
	w.t.Logf("%d pets acknowledged, %d refused, %d with an unknown outcome", len(w.made), len(w.refused), len(w.unknown))
}
