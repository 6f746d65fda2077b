package sqlite_test

import (
	"bufio"
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// kept is a list that is read again when the version says so.
type kept struct {
	version uint64
	pets    int
}

func (k *kept) count(ctx context.Context, s *sqlite.Store) (int, error) {
	v, ok := s.PetsVersion()
	if ok && v == k.version {
		return k.pets, nil
	}
	pets, _, err := s.ListPets(ctx, store.ListQuery{Limit: store.MaxList})
	if err == nil && ok {
		*k = kept{v, len(pets)}
	}
	return len(pets), err
}

// Every pet that was acknowledged before a read began is in it, although the list is
// kept: pets of this handle, of another one, and of another process.
func TestKeptListsAreExact(t *testing.T) {
	path := tempDatabase(t)
	s, second := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	const own = 150
	var acknowledged atomic.Int64
	var writers, readers sync.WaitGroup
	for _, handle := range []*sqlite.Store{s, second} {
		writers.Go(func() {
			for range own {
				if _, err := handle.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
					t.Error(err)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	writers.Go(func() {
		cmd := program(t, "create pets without end", path)
		stdout, err := cmd.StdoutPipe()
		if err != nil {
			t.Error(err)
			return
		}
		if err := cmd.Start(); err != nil {
			t.Error(err)
			return
		}
		lines := bufio.NewScanner(stdout)
		for n := 0; n < own && lines.Scan(); n++ {
			acknowledged.Add(1)
		}
		cmd.Process.Kill()
		cmd.Wait()
	})
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			var k kept
			for {
				least := int(acknowledged.Load())
				if got, err := k.count(t.Context(), s); err != nil || got < min(least, store.MaxList) {
					t.Errorf("a list has %d pets, %v, want the %d that were acknowledged before", got, err, least)
					return
				}
				select {
				case <-done:
					return
				default:
				}
			}
		})
	}
	writers.Wait()
	close(done)
	readers.Wait()
	if n := acknowledged.Load(); n != 3*own {
		t.Errorf("%d pets were acknowledged, want %d", n, 3*own)
	}
}
