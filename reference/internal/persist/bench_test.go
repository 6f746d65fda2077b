package persist_test

import (
	"fmt"
	"path/filepath"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/persist"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

// BenchmarkStart opens a usage file of a million subjects with two quotas and
// loads them into an engine, as a server does when it starts.
func BenchmarkStart(b *testing.B) {
	const subjects = 1_000_000
	path := filepath.Join(b.TempDir(), "usage")
	db, err := sqlite.OpenUsage(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	l, _, err := persist.Load(b.Context(), db, memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	plan := ratelimit.MustPlan("test", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(1000))
	for i := range subjects {
		if _, err := l.Take(b.Context(), fmt.Sprint("owner:", i), plan, 1); err != nil {
			b.Fatal(err)
		}
	}
	if err := persist.LimiterTask(l, db).Save(b.Context()); err != nil {
		b.Fatal(err)
	}
	if err := db.Close(); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		db, err := sqlite.OpenUsage(b.Context(), path, sqlite.Options{})
		if err != nil {
			b.Fatal(err)
		}
		l, damaged, err := persist.Load(b.Context(), db, memory.Options{})
		if err != nil || damaged > 0 || l.Stats().Subjects != subjects {
			b.Fatalf("loaded %d subjects, %d damaged, %v; want %d", l.Stats().Subjects, damaged, err, subjects)
		}
		b.StopTimer()
		db.Close()
		b.StartTimer()
	}
}

func BenchmarkDailyUse(b *testing.B) {
	d := persist.NewDailyUse(time.Now)
	owners := make([]string, 1000)
	for i := range owners {
		owners[i] = fmt.Sprint("owner ", i)
	}
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		d.Count(owners[i%len(owners)], true)
	}
}
