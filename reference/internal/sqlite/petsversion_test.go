package sqlite

import (
	"database/sql"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// askedVersion returns the number of what is stored, as if SQLite had not been asked for
// long.
func askedVersion(t *testing.T, s *Store) uint64 {
	t.Helper()
	s.watch.asked.Store(-int64(time.Hour))
	v, ok := s.PetsVersion()
	if !ok {
		t.Fatal("PetsVersion = false, want a number")
	}
	return v
}

// What another connection commits changes the number once SQLite is asked, and what this
// store commits changes it in any case.
func TestPetsVersionChangesWithEachCommit(t *testing.T) {
	s := openTest(t)
	other, err := sql.Open("sqlite", s.path)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	other.SetMaxOpenConns(1)
	create := func() {
		if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
			t.Fatal(err)
		}
	}
	execute := func(statements ...string) func() {
		return func() {
			for _, text := range append([]string{"PRAGMA busy_timeout = 5000"}, statements...) {
				if _, err := other.ExecContext(t.Context(), text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
		}
	}
	changes := map[string]func(){
		"a pet":                      create,
		"an update":                  execute("UPDATE pets SET status = 'sold' WHERE id = 1"),
		"VACUUM":                     execute("VACUUM"),
		"a write after a checkpoint": execute("PRAGMA wal_checkpoint(RESTART)", "UPDATE pets SET name = name || 'x' WHERE id = 1"),
		"a write after truncation":   execute("PRAGMA wal_checkpoint(TRUNCATE)", "UPDATE pets SET name = 'x' WHERE id = 1"),
	}
	stays := map[string]func(){
		"nothing":              func() {},
		"a rollback":           execute("BEGIN IMMEDIATE", "UPDATE pets SET status = 'sold'", "ROLLBACK"),
		"a list":               func() { names(t, s) },
		"a passive checkpoint": execute("PRAGMA wal_checkpoint(PASSIVE)"),
	}
	var steps []string
	for name := range changes {
		steps = append(steps, name)
	}
	for name := range stays {
		steps = append(steps, name)
	}
	slices.Sort(steps)
	create()
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		name := steps[r.IntN(len(steps))]
		before := askedVersion(t, s)
		if do := changes[name]; do != nil {
			do()
		} else {
			stays[name]()
		}
		if after := askedVersion(t, s); (after != before) != (changes[name] != nil) {
			t.Errorf("%s: the version went from %d to %d", name, before, after)
		}
	}
	s.Close()
	s.watch.asked.Store(-int64(time.Hour))
	if _, ok := s.PetsVersion(); ok {
		t.Error("PetsVersion after Close = true, want false")
	}
}

// Every pet that this store acknowledged before a read began is in it, although the list is
// kept, and SQLite is not asked.
func TestKeptListsAreExact(t *testing.T) {
	s := openTest(t)
	s.watch.asked.Store(int64(time.Hour))
	var acknowledged atomic.Int64
	var writers, readers sync.WaitGroup
	for range 2 {
		writers.Go(func() {
			for n := range 150 {
				if _, err := s.CreatePet(t.Context(), store.NewPet{Name: fmt.Sprint(n)}); err != nil {
					t.Error(err)
					return
				}
				acknowledged.Add(1)
			}
		})
	}
	done := make(chan struct{})
	for range 3 {
		readers.Go(func() {
			kept, version := 0, uint64(0)
			for {
				least := int(acknowledged.Load())
				if v, ok := s.PetsVersion(); !ok || v != version {
					kept, version = len(names(t, s)), v
				}
				if kept < least {
					t.Errorf("a list has %d pets, want the %d that were acknowledged before", kept, least)
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
}

func BenchmarkPetsVersion(b *testing.B) {
	s, err := Open(b.Context(), b.TempDir()+"/pets.db", Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	b.ReportAllocs()
	b.RunParallel(func(pb *testing.PB) {
		for pb.Next() {
			s.PetsVersion()
		}
	})
}
