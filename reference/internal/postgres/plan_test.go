//go:build unix

package postgres_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/postgres/postgrestest"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A page, a pet and a key read as few blocks of a large table as of a small one, wherever
// the page begins and however the statuses are spread.
func TestReadsTakeFewBlocks(t *testing.T) {
	url := postgrestest.Database(t)
	s := open(t, url, postgres.Options{})
	const n = 200_000
	// Mixed at first, then only sold ones, then a few that are available.
	postgrestest.Exec(t, url, fmt.Sprintf(`INSERT INTO pets (name, category_id, status)
		SELECT 'Rex', 1, CASE WHEN n > %d THEN 'available' WHEN n > %[1]d / 2 THEN 'sold' WHEN n %% 2 = 0 THEN 'pending' ELSE 'available' END
		FROM generate_series(1, %[1]d + 100) AS n`, n),
		`INSERT INTO keys SELECT 'key_' || n, decode(lpad(to_hex(n), 64, '0'), 'hex'), 'abcd', 'n', 'o', 'p', '{}', '{}', now()
		FROM generate_series(1, 50000) AS n`,
		"VACUUM ANALYZE pets", "ANALYZE keys")

	for _, after := range []int64{0, n / 4, n / 2, n/2 + 10, n, n + 50} {
		for _, status := range []store.Status{"", store.Available, store.Pending, store.Sold} {
			q := store.ListQuery{Limit: 20, Status: status, After: after}
			pets, more, err := s.ListPets(t.Context(), q)
			if err != nil {
				t.Fatal(err)
			}
			for i, p := range pets {
				if status != "" && p.Status != status || p.ID <= after || i > 0 && p.ID <= pets[i-1].ID {
					t.Errorf("ListPets(%+v) has pet %+v", q, p)
				}
			}
			want := query[int](t, url, "SELECT least(count(*), 21)::int FROM pets WHERE id > $1 AND (status = $2 OR $2 = '')", after, string(status))
			if got := len(pets); got != min(want, 20) || more != (want > 20) {
				t.Errorf("ListPets(%+v) = %d pets, %v, want %d", q, got, more, want)
			}
		}
	}
	conn, err := pgx.Connect(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(t.Context())
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		for _, after := range []int64{0, n / 2, n} {
			for text, args := range map[string]string{
				postgres.ListPetsText:    fmt.Sprintf("%d, 21", after),
				postgres.ListStatusText:  fmt.Sprintf("%d, 21, 'available'", after),
				postgres.PetText:         fmt.Sprint(after),
				postgres.KeyByDigestText: `'\x01'`,
			} {
				for _, statement := range []string{"SET plan_cache_mode = " + mode, "PREPARE p AS " + text} {
					if _, err := conn.Exec(t.Context(), statement); err != nil {
						t.Fatal(err)
					}
				}
				rows, _ := conn.Query(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, TIMING OFF, SUMMARY OFF) EXECUTE p ("+args+")")
				plan, err := pgx.CollectRows(rows, pgx.RowTo[string])
				if err != nil {
					t.Fatal(err)
				}
				if blocks := buffers(t, plan); blocks > 40 {
					t.Errorf("%s, %s (%s): %d blocks are read, want at most 40:\n%s", mode, text, args, blocks, strings.Join(plan, "\n"))
				}
				if _, err := conn.Exec(t.Context(), "DEALLOCATE p"); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// buffers returns the number of blocks that the first line about them has.
func buffers(t *testing.T, plan []string) (n int) {
	t.Helper()
	for _, line := range plan {
		_, counts, ok := strings.Cut(line, "Buffers: shared")
		if !ok {
			continue
		}
		for field := range strings.FieldsSeq(counts) {
			var blocks int
			if _, err := fmt.Sscanf(field, "hit=%d", &blocks); err == nil {
				n += blocks
			} else if _, err := fmt.Sscanf(field, "read=%d", &blocks); err == nil {
				n += blocks
			}
		}
		return n
	}
	t.Fatalf("the plan has no buffers:\n%s", strings.Join(plan, "\n"))
	return 0
}
