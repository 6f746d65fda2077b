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
