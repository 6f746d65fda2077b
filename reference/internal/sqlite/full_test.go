package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestFullDatabase(t *testing.T) {
	s := openTest(t)
	limit := func(pages int) {
		t.Helper()
		if err := s.write(t.Context(), "test", func(ctx context.Context) error {
			_, err := s.writer.conn.ExecContext(ctx, fmt.Sprintf("PRAGMA max_page_count = %d", pages))
			return err
		}); err != nil {
			t.Fatal(err)
		}
	}
	limit(30)

	// Callers at once, so that transactions are shared when it happens.
	var mu sync.Mutex
	acknowledged := map[int64]bool{}
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for {
				pet, err := s.CreatePet(t.Context(), store.NewPet{Name: fmt.Sprintf("%0255d", 0)})
				if err != nil {
					if !errors.Is(err, store.ErrUnavailable) {
						t.Errorf("CreatePet in a full database = %v, want an error that wraps ErrUnavailable", err)
					}
					return
				}
				mu.Lock()
				acknowledged[pet.ID] = true
				mu.Unlock()
			}
		})
	}
	wg.Wait()

	checkAcknowledged(t, s, acknowledged)
	limit(1000)
	if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
		t.Errorf("CreatePet when there is room again = %v", err)
	}
}

// checkAcknowledged checks that exactly these pets are stored.
func checkAcknowledged(t *testing.T, s *Store, acknowledged map[int64]bool) {
	t.Helper()
	if len(acknowledged) == 0 {
		t.Fatal("nothing was acknowledged before the database was full")
	}
	stored := map[int64]bool{}
	q := store.ListQuery{Limit: store.MaxList}
	for more := true; more; {
		var pets []store.Pet
		var err error
		if pets, more, err = s.ListPets(t.Context(), q); err != nil {
			t.Fatalf("ListPets of a full database = %v", err)
		}
		for _, p := range pets {
			stored[p.ID], q.After = true, p.ID
		}
	}
	if diff := cmp.Diff(acknowledged, stored); diff != "" {
		t.Errorf("what is stored is not what was acknowledged (-acknowledged +stored):\n%s", diff)
	}
}
