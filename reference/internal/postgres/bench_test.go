//go:build unix

package postgres_test

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// BenchmarkCreatePet is of a server that syncs each commit to the disk. Its commits at the
// same time share a sync, so it takes many callers, and connections, to keep it busy.
func BenchmarkCreatePet(b *testing.B) {
	server := postgrestest.Start(b, "fsync=on")
	for _, bench := range []struct{ callers, conns int }{{1, 16}, {16, 16}, {64, 4}, {64, 16}, {64, 64}} {
		b.Run(fmt.Sprintf("callers=%d/conns=%d", bench.callers, bench.conns), func(b *testing.B) {
			s := open(b, fmt.Sprintf("%s&pool_max_conns=%d", server.URL("postgres"), bench.conns), postgres.Options{})
			var next atomic.Int64
			var wg sync.WaitGroup
			b.ReportAllocs()
			b.ResetTimer()
			for range bench.callers {
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
		})
	}
}

// BenchmarkRead has the same cost for each number of pets.
func BenchmarkRead(b *testing.B) {
	for _, pets := range []int{100, 1_000_000} {
		url := postgrestest.Database(b)
		s := open(b, url, postgres.Options{})
		postgrestest.Exec(b, url, fmt.Sprintf(`INSERT INTO pets (name, category_id, status)
			SELECT 'Rex', 1, (ARRAY['available', 'pending', 'sold'])[1 + n %% 3] FROM generate_series(1, %d) AS n`, pets), "ANALYZE pets")
		key := store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "free", Created: noon}
		if _, err := s.CreateKey(b.Context(), key, store.Actor{Name: "test"}); err != nil {
			b.Fatal(err)
		}
		run := func(name string, do func() error) {
			b.Run(fmt.Sprintf("%s/pets=%d", name, pets), func(b *testing.B) {
				b.ReportAllocs()
				for b.Loop() {
					if err := do(); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
		page := func(status store.Status, after int64) func() error {
			return func() error {
				_, _, err := s.ListPets(b.Context(), store.ListQuery{Limit: 20, Status: status, After: after})
				return err
			}
		}
		run("Pet", func() error {
			_, err := s.Pet(b.Context(), 50)
			return err
		})
		run("ListPets/all", page("", 0))
		run("ListPets/status", page(store.Available, 0))
		run("ListPets/status-late", page(store.Available, int64(pets)/10*9))
		run("KeyByDigest", func() error {
			_, err := s.KeyByDigest(b.Context(), key.Digest)
			return err
		})
	}
}
