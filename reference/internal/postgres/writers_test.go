//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/store"

	"sync/atomic"
)

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

// write creates a pet in one of the three ways.
func (w *writers) write(n int64) {
	p := store.NewPet{Name: fmt.Sprint(n), CategoryID: n}
	k := store.IdempotencyKey{Owner: "ada", Key: fmt.Sprint(n), At: noon}
	var pet store.Pet
	var err error
	switch n % 8 {
	case 0:
		pet, _, err = w.s.CreatePetIf(context.Background(), p, &k, always)
	case 1, 2, 3:
		pet, _, err = w.s.CreatePetIf(context.Background(), p, &k, nil)
	default:
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
