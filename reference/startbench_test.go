package main_test

import (
	"database/sql"
	"fmt"
	"net/http"
	"path/filepath"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// BenchmarkStart measures a start as a client sees it: from the start of the process to
// the first 200 of /readyz and of the API, with a usage file of many subjects. It also
// reports how long SIGTERM takes until the process has ended.
func BenchmarkStart(b *testing.B) {
	for _, size := range []struct {
		pets, keys, subjects int
		long                 bool
	}{
		{0, 1, 0, false},
		{10_000, 1000, 10_000, false},
		{100_000, 10_000, 100_000, false},
		{1_000_000, 100_000, 1, true},
		{1_000_000, 100_000, 1_000_000, true},
	} {
		b.Run(fmt.Sprintf("pets=%d/keys=%d/subjects=%d", size.pets, size.keys, size.subjects), func(b *testing.B) {
			if size.long && !testenv.IsLong() {
				b.Skip("it takes long; run with -long")
			}
			dir := b.TempDir()
			fillDatabase(b, filepath.Join(dir, "petstore.db"), size.pets, size.keys)
			fillUsage(b, sqlite.UsagePath(filepath.Join(dir, "petstore.db")), size.subjects)
			var stops time.Duration
			for b.Loop() {
				p, err := launch(dir, environment())
				if err != nil {
					b.Fatal(err)
				}
				for _, url := range []string{p.admin + "/readyz", p.api + "/openapi.json"} {
					response, err := http.Get(url)
					if err != nil || response.StatusCode != http.StatusOK {
						b.Fatalf("%s = %v, %v, want 200", url, response, err)
					}
					response.Body.Close()
				}
				b.StopTimer()
				begin := time.Now()
				if err := p.stop(); err != nil {
					b.Fatal(err)
				}
				stops += time.Since(begin)
				b.StartTimer()
			}
			b.ReportMetric(stops.Seconds()/float64(b.N), "stop-s/op")
		})
	}
}

// fillDatabase makes a database with many pets and keys.
func fillDatabase(b *testing.B, path string, pets, keys int) {
	b.Helper()
	store, err := sqlite.Open(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	if err := store.Close(); err != nil {
		b.Fatal(err)
	}
	db, err := sql.Open("sqlite", path)
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	for text, n := range map[string]int{
		`INSERT INTO pets (name, category_id, status) SELECT 'pet ' || i, i % 100, iif(i % 3, 'available', 'sold') FROM n`: pets,
		`INSERT INTO keys (id, digest, last_four, name, owner, plan, quotas, created)
			SELECT 'key_' || hex(randomblob(8)), randomblob(32), 'abcd', 'key ' || i, 'owner ' || i, 'pro', '[]', i FROM n`: keys,
	} {
		if _, err := db.ExecContext(b.Context(), `WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n LIMIT ?) `+text, n); err != nil {
			b.Fatal(err)
		}
	}
}

// fillUsage makes a usage file of many subjects with two windows, as a server leaves it
// in which each of them sends a request now and then.
func fillUsage(b *testing.B, path string, subjects int) {
	b.Helper()
	db, err := sqlite.OpenUsage(b.Context(), path, sqlite.Options{})
	if err != nil {
		b.Fatal(err)
	}
	defer db.Close()
	engine, _, err := store.LoadLimiter(b.Context(), db, memory.Options{})
	if err != nil {
		b.Fatal(err)
	}
	task := store.LimiterTask(engine, db)
	plan := ratelimit.MustPlan("pro", ratelimit.Penalty{}, ratelimit.PerMinute(300), ratelimit.PerDay(10000))
	for i := range 3 * subjects {
		if _, err := engine.Take(b.Context(), fmt.Sprint("owner:", i%subjects), plan, 1); err != nil {
			b.Fatal(err)
		}
		if i%(subjects/20+1) == 0 {
			if err := task.Save(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	}
	if err := task.Save(b.Context()); err != nil {
		b.Fatal(err)
	}
}
