package sqlite_test

import (
	"context"
	"database/sql"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func openBench(b *testing.B) *sqlite.Store {
	b.Helper()
	s, err := sqlite.Open(b.Context(), filepath.Join(b.TempDir(), "pets.db"), sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Close() })
	return s
}

// createAtOnce creates b.N pets from a number of callers, each of which begins
// with the next when the last is acknowledged.
func createAtOnce(b *testing.B, s *sqlite.Store, callers int) {
	b.Helper()
	b.ReportAllocs()
	var next atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range callers {
		wg.Go(func() {
			for next.Add(1) <= int64(b.N) {
				if _, err := s.CreatePet(context.Background(), store.NewPet{Name: "Rex", CategoryID: 1}); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "pets/s")
}

// BenchmarkCreatePet measures writes that share a transaction, and so the wait for the
// disk.
func BenchmarkCreatePet(b *testing.B) {
	for _, callers := range []int{1, 16, 64} {
		b.Run(fmt.Sprint("callers=", callers), func(b *testing.B) {
			createAtOnce(b, openBench(b), callers)
		})
	}
}

// BenchmarkCreatePetIf is one caller of BenchmarkCreatePet, with an idempotency key for
// each pet, which replaces one that has expired, and with one that is sent again.
func BenchmarkCreatePetIf(b *testing.B) {
	s := openBench(b)
	at := time.Unix(0, 0)
	n := 0
	create := func(b *testing.B, n int) {
		b.Helper()
		k := store.IdempotencyKey{Owner: "ada", Key: fmt.Sprint(n), At: at.Add(time.Duration(n) * time.Minute)}
		if _, _, err := s.CreatePetIf(b.Context(), store.NewPet{Name: "Rex", CategoryID: 1}, &k, nil); err != nil {
			b.Fatal(err)
		}
	}
	b.Run("new", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			create(b, n)
			n++
		}
	})
	b.Run("again", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			create(b, n-1)
		}
	})
}

func BenchmarkRead(b *testing.B) {
	s := openBench(b)
	for range 1000 {
		if _, err := s.CreatePet(b.Context(), store.NewPet{Name: "Rex", CategoryID: 1}); err != nil {
			b.Fatal(err)
		}
	}
	key := store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "free", Created: time.Unix(1, 0)}
	if _, err := s.CreateKey(b.Context(), key, store.Actor{Name: "test"}); err != nil {
		b.Fatal(err)
	}
	b.Run("Pet", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.Pet(b.Context(), 500); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("ListPets/limit=20", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := s.ListPets(b.Context(), store.ListQuery{Limit: 20, Status: store.Available, After: 500}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("KeyByDigest", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := s.KeyByDigest(b.Context(), key.Digest); err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkListKeys lists 100,000 keys.
func BenchmarkListKeys(b *testing.B) {
	path := filepath.Join(b.TempDir(), "pets.db")
	s, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer s.Close()
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	if _, err := db.ExecContext(b.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT 100000)
		INSERT INTO keys (id, digest, last_four, name, owner, plan, quotas, created)
		SELECT 'key_' || i, randomblob(32), 'abcd', 'key ' || i, 'owner ' || i, 'pro', '[]', i FROM n`); err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if keys, err := s.ListKeys(b.Context()); err != nil || len(keys) != 100_000 {
			b.Fatalf("ListKeys = %d keys, %v", len(keys), err)
		}
	}
}
