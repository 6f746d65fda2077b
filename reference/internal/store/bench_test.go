package store_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A saved is an engine whose state is in a file, as a server leaves it in which each
// subject sends a request now and then.
type saved struct {
	path   string
	db     *sqlite.Usage
	engine *memory.Limiter
	task   store.SaveTask
	n      int // subjects, with two windows
}

// room is enough for the largest benchmark. The server has the default.
var room = memory.Options{MaxSubjects: 1 << 24}

var benchPlan = ratelimit.MustPlan("test", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerDay(1000))

func newSaved(b *testing.B, n int) *saved {
	b.Helper()
	if n > 1_000_000 && !testenv.IsLong() {
		b.Skip("it takes long; run with -long")
	}
	s := &saved{path: filepath.Join(b.TempDir(), "usage"), n: n}
	var err error
	if s.db, err = sqlite.OpenUsage(b.Context(), s.path, sqlite.Options{}); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.db.Close() })
	if s.engine, _, err = store.LoadLimiter(b.Context(), s.db, room); err != nil {
		b.Fatal(err)
	}
	s.task = store.LimiterTask(s.engine, s.db)
	for from := 0; from < 3*n; from += n/20 + 1 {
		s.take(b, from, n/20+1)
		s.save(b)
	}
	return s
}

// take sends requests of some subjects.
func (s *saved) take(b *testing.B, from, n int) {
	for i := range n {
		_, err := s.engine.Take(b.Context(), fmt.Sprint("owner:", (from+i)%s.n), benchPlan, 1)
		must(b, err)
	}
}

func (s *saved) save(b *testing.B) {
	must(b, s.task.Save(b.Context()))
}

func eachSize(b *testing.B, run func(b *testing.B, s *saved)) {
	for _, n := range []int{10_000, 100_000, 1_000_000, 10_000_000} {
		b.Run(fmt.Sprint("subjects=", n), func(b *testing.B) { run(b, newSaved(b, n)) })
	}
}

// BenchmarkStart opens a usage file and loads it into an engine, as a server does when it
// starts.
func BenchmarkStart(b *testing.B) {
	eachSize(b, func(b *testing.B, s *saved) {
		s.db.Close()
		for b.Loop() {
			db, err := sqlite.OpenUsage(b.Context(), s.path, sqlite.Options{})
			must(b, err)
			l, damaged, err := store.LoadLimiter(b.Context(), db, room)
			if err != nil || damaged > 0 || l.Stats().Subjects != int64(s.n) {
				b.Fatalf("loaded %d subjects, %d damaged, %v; want %d", l.Stats().Subjects, damaged, err, s.n)
			}
			b.StopTimer()
			db.Close()
			b.StartTimer()
		}
	})
}

// BenchmarkSave saves after 10,000 requests of different subjects, as a busy server does
// twice a second, and after one of every subject.
func BenchmarkSave(b *testing.B) {
	eachSize(b, func(b *testing.B, s *saved) {
		for _, changed := range slices.Compact([]int{10_000, s.n}) {
			b.Run(fmt.Sprint("changed=", changed), func(b *testing.B) {
				for i := 0; b.Loop(); i++ {
					b.StopTimer()
					s.take(b, i*changed, changed)
					b.StartTimer()
					s.save(b)
				}
			})
		}
	})
}
