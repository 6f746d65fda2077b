package sqlite

import (
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

var must = testcheck.NoError

// Each page is found through an index and is in order there, so that it costs the same
// however many pets there are.
func TestListIsASearch(t *testing.T) {
	s := openTest(t)
	for text, want := range map[string]string{
		store.ListPetsText:            "SEARCH pets USING INTEGER PRIMARY KEY (rowid>?)",
		store.SQLite.ListStatusText(): "SEARCH pets USING COVERING INDEX pets_by_status (status=? AND id>?)",
	} {
		rows, err := s.reads.QueryContext(t.Context(), "EXPLAIN QUERY PLAN "+text, 1, 2, 3)
		must(t, err)
		var plan []string
		for rows.Next() {
			var id, parent, unused int
			var step string
			must(t, rows.Scan(&id, &parent, &unused, &step))
			plan = append(plan, step)
		}
		must(t, rows.Err())
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
