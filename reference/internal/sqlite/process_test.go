package sqlite_test

import (
	"errors"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// runTogether runs programs at once, each in its own process.
func runTogether(t *testing.T, path string, names ...string) {
	t.Helper()
	var wg sync.WaitGroup
	for _, name := range names {
		cmd := program(t, name, path)
		wg.Go(func() {
			if out, err := cmd.CombinedOutput(); err != nil {
				t.Errorf("process %q: %v: %s", name, err, out)
			}
		})
	}
	wg.Wait()
}

func TestProcessesStartTogetherOnANewFile(t *testing.T) {
	for range 3 {
		path := tempDatabase(t)
		runTogether(t, path, "create a first key", "create 25 pets", "create a first key", "create 25 pets",
			"open", "open", "open", "open")

		s := open(t, path, sqlite.Options{})
		pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 100})
		if err != nil || len(pets) != 50 {
			t.Errorf("ListPets = %d pets, %v, want the 50 of both processes", len(pets), err)
		}
		keys, err := s.ListKeys(t.Context())
		if err != nil || len(keys) != 1 {
			t.Errorf("ListKeys = %d keys, %v, want the one that was first", len(keys), err)
		}
	}
}

func TestProcessesWriteWhileAnotherServes(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for range 25 {
				if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
					t.Errorf("CreatePet beside other processes = %v", err)
				}
			}
		})
	}
	runTogether(t, path, "create 25 pets", "create a first key", "create 25 pets")
	wg.Wait()

	pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: store.MaxList})
	if err != nil || len(pets) != 150 {
		t.Errorf("ListPets = %d pets, %v, want 150", len(pets), err)
	}
	// What another process has written is seen without a delay.
	keys, err := s.ListKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Fatalf("ListKeys = %d keys, %v, want the other process's", len(keys), err)
	}
	if _, err := s.KeyByDigest(t.Context(), keys[0].Digest); err != nil {
		t.Errorf("KeyByDigest = %v", err)
	}
}

func TestBusyDatabase(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	other := raw(t, path)
	execute(t, other, "BEGIN IMMEDIATE")

	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("CreatePet while another process writes = %v, want an error that wraps ErrUnavailable", err)
	}
	if pets, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 1}); err != nil || len(pets) > 0 {
		t.Errorf("ListPets while another process writes = %v, %v, want no pets", pets, err)
	}
	if err := s.Ping(t.Context()); err != nil {
		t.Errorf("Ping while another process writes = %v", err)
	}

	execute(t, other, "COMMIT")
	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
		t.Errorf("CreatePet after the other process has ended = %v", err)
	}
}

func TestUsageHasOneServer(t *testing.T) {
	path := sqlite.UsagePath(tempDatabase(t))
	first, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatalf("OpenUsage = %v", err)
	}
	_, err = sqlite.OpenUsage(t.Context(), path, sqlite.Options{BusyTimeout: 20 * time.Millisecond})
	if !errors.Is(err, sqlite.ErrInUse) || !errors.Is(err, store.ErrUnavailable) {
		t.Errorf("a second OpenUsage = %v, want an error that wraps ErrInUse and ErrUnavailable", err)
	}

	// A server that is about to end is waited for.
	type opened struct {
		u   *sqlite.Usage
		err error
	}
	second := make(chan opened)
	go func() {
		u, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{BusyTimeout: time.Minute})
		second <- opened{u, err}
	}()
	if err := first.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
	o := <-second
	if o.err != nil {
		t.Fatalf("OpenUsage when the first server has ended = %v", o.err)
	}
	if err := o.u.Close(); err != nil {
		t.Errorf("Close = %v", err)
	}
}
