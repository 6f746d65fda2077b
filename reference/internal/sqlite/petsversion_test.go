package sqlite_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// version returns the number of what is stored, and fails the test if there is none.
func version(t *testing.T, s *sqlite.Store) uint64 {
	t.Helper()
	v, ok := s.PetsVersion()
	if !ok {
		t.Fatal("PetsVersion = false, want a number while nothing is written")
	}
	return v
}

// The model is SQLite's own data_version, on a connection that never writes: when that
// changes, so must PetsVersion.
func TestPetsVersionChangesWithEachCommit(t *testing.T) {
	path := tempDatabase(t)
	s, second := open(t, path, sqlite.Options{}), open(t, path, sqlite.Options{})
	watch, other := raw(t, path), raw(t, path)
	execute(t, other, "PRAGMA busy_timeout = 5000")
	dataVersion := func() (n int64) {
		t.Helper()
		if err := watch.QueryRowContext(t.Context(), "PRAGMA data_version").Scan(&n); err != nil {
			t.Fatal(err)
		}
		return n
	}
	create := func(s *sqlite.Store) func() {
		return func() {
			if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"}); err != nil {
				t.Fatal(err)
			}
		}
	}
	sql := func(statements ...string) func() { return func() { execute(t, other, statements...) } }
	changes := map[string]func(){
		"a pet":                      create(s),
		"a pet of another handle":    create(second),
		"an audit entry":             func() { addAudit(t, s) },
		"an update":                  sql("UPDATE pets SET status = 'sold' WHERE id = 1"),
		"a deletion":                 sql("DELETE FROM pets WHERE id = (SELECT max(id) FROM pets)"),
		"a larger transaction":       sql("BEGIN", manyPets, "DELETE FROM pets WHERE category_id > 1", "COMMIT"),
		"VACUUM":                     sql("VACUUM"),
		"a write after a checkpoint": sql("PRAGMA wal_checkpoint(RESTART)", "UPDATE pets SET name = name || 'x' WHERE id = 1"),
		"a write after truncation":   sql("PRAGMA wal_checkpoint(TRUNCATE)", "UPDATE pets SET name = 'x' WHERE id = 1"),
		"another handle that closes": func() { openAndWrite(t, path) },
	}
	stays := map[string]func(){
		"nothing":    func() {},
		"a rollback": sql("BEGIN IMMEDIATE", "UPDATE pets SET status = 'sold'", "ROLLBACK"),
		"a list": func() {
			if _, _, err := s.ListPets(t.Context(), store.ListQuery{Limit: 10}); err != nil {
				t.Fatal(err)
			}
		},
		"a passive checkpoint": sql("PRAGMA wal_checkpoint(PASSIVE)"),
	}
	var steps []string
	for name := range changes {
		steps = append(steps, name)
	}
	for name := range stays {
		steps = append(steps, name)
	}
	slices.Sort(steps)
	create(s)()
	r := rand.New(rand.NewPCG(1, 2))
	for range 200 {
		name := steps[r.IntN(len(steps))]
		before, modelBefore := version(t, s), dataVersion()
		if do := changes[name]; do != nil {
			do()
		} else {
			stays[name]()
		}
		after, modelAfter := version(t, s), dataVersion()
		if (changes[name] != nil || modelAfter != modelBefore) && after == before {
			t.Errorf("%s: the version stays %d, want another one (data_version went from %d to %d)", name, after, modelBefore, modelAfter)
		}
		if stays[name] != nil && modelAfter == modelBefore && after != before {
			t.Errorf("%s: the version went from %d to %d, want the same one", name, before, after)
		}
	}
}

func addAudit(t *testing.T, s *sqlite.Store) {
	t.Helper()
	if err := s.AddAudit(t.Context(), store.AuditEntry{At: time.Unix(1, 0), Actor: "test", Action: "x", Target: "y"}); err != nil {
		t.Fatal(err)
	}
}

func openAndWrite(t *testing.T, path string) {
	t.Helper()
	err := withStore(t.Context(), path, func(s *sqlite.Store) error {
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// A call during Close gets no number, and reads no memory that is gone.
func TestPetsVersionDuringClose(t *testing.T) {
	for range 20 {
		s, err := sqlite.Open(t.Context(), tempDatabase(t), sqlite.Options{})
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for range 4 {
			wg.Go(func() {
				for {
					if _, ok := s.PetsVersion(); !ok {
						return
					}
				}
			})
		}
		if err := s.Close(); err != nil {
			t.Errorf("Close = %v", err)
		}
		wg.Wait()
	}
}

// A file that is opened again has other numbers, or none that a caller has kept.
func TestPetsVersionAfterAKill(t *testing.T) {
	path := tempDatabase(t)
	s := open(t, path, sqlite.Options{})
	before := version(t, s)
	killAfter(t, program(t, "create pets without end", path), 20)
	var k kept
	if got, err := k.count(t.Context(), s); err != nil || got < 20 {
		t.Errorf("a list has %d pets, %v, want the 20 that were acknowledged", got, err)
	}
	if after := version(t, s); after == before {
		t.Errorf("the version after a kill stays %d, want another one", after)
	}
}

func BenchmarkPetsVersion(b *testing.B) {
	s := openBench(b, sqlite.Options{})
	read := func() {
		if _, ok := s.PetsVersion(); !ok {
			b.Error("PetsVersion = false, want a number")
		}
	}
	b.Run("one caller", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			read()
		}
	})
	b.Run("callers at once", func(b *testing.B) {
		b.ReportAllocs()
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				read()
			}
		})
	})
}
