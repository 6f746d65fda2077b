package sqlite

import (
	"context"
	"fmt"
	"math/rand/v2"
	"path/filepath"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Each page is found through an index and is in order there, so that it costs the same
// however many pets there are. See [BenchmarkListPets].
func TestListIsASearch(t *testing.T) {
	s := openTest(t)
	for text, want := range map[string]string{
		listPetsText:   "SEARCH pets USING INTEGER PRIMARY KEY (rowid>?)",
		listStatusText: "SEARCH pets USING COVERING INDEX pets_by_status (status=? AND id>?)",
	} {
		rows, err := s.reads.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, 1, 2, 3)
		if err != nil {
			t.Fatal(err)
		}
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			if err := rows.Scan(&id, &parent, &unused, &step); err != nil {
				t.Fatal(err)
			}
			plan = append(plan, step)
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		got := strings.Join(plan, "\n")
		if !strings.Contains(got, want) || strings.Contains(got, "TEMP B-TREE") {
			t.Errorf("the plan of %s is\n%s\nwant %s, and nothing sorted", text, got, want)
		}
		for _, step := range plan {
			if strings.HasPrefix(step, "SCAN pets") {
				t.Errorf("the plan of %s has %q, want no scan of the table", text, step)
			}
		}
	}
}

// fill stores n pets in turn of each status, quickly.
func (s *Store) fill(ctx context.Context, n int) error {
	return s.write(ctx, "test", func(ctx context.Context) error {
		_, err := s.writer.conn.ExecContext(ctx, `INSERT INTO pets (name, category_id, status)
			WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n LIMIT ?)
			SELECT 'Pet ' || i, i % 100, CASE i % 3 WHEN 0 THEN 'available' WHEN 1 THEN 'pending' ELSE 'sold' END FROM n`, n)
		return err
	})
}

// BenchmarkListPets reads the first page of 20 pets, and pages anywhere in the list, with
// and without a filter. A page costs the same with a hundred pets and, with
// the flag -long, a million.
func BenchmarkListPets(b *testing.B) {
	sizes := []int{100}
	if testenv.IsLong() {
		sizes = append(sizes, 1_000_000)
	}
	for _, n := range sizes {
		s, err := Open(b.Context(), filepath.Join(b.TempDir(), "pets.db"), Options{})
		if err != nil {
			b.Fatal(err)
		}
		b.Cleanup(func() { s.Close() })
		if err := s.fill(b.Context(), n); err != nil {
			b.Fatal(err)
		}
		for _, status := range []store.Status{"", store.Sold} {
			for name, last := range map[string]int64{"first": 1, "random": int64(n) * 3 / 10} {
				b.Run(fmt.Sprintf("pets=%d/status=%s/page=%s", n, status, name), func(b *testing.B) {
					b.ReportAllocs()
					for b.Loop() {
						q := store.ListQuery{Limit: 20, Status: status, After: rand.Int64N(last)}
						if pets, _, err := s.ListPets(b.Context(), q); err != nil || len(pets) != 20 {
							b.Fatalf("ListPets = %d pets, %v, want 20", len(pets), err)
						}
					}
				})
			}
		}
	}
}
