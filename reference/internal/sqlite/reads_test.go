package sqlite

import (
	"database/sql"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

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

// askedVersion returns the number of what is stored, as if SQLite had not been asked for
// long.
func askedVersion(t *testing.T, s *Store) uint64 {
	t.Helper()
	s.watch.asked.Store(-int64(time.Hour))
	v, ok := s.PetsVersion()
	if !ok {
		t.Fatal("PetsVersion = false, want a number")
	}
	return v
}

// What another connection commits changes the number once SQLite is asked, and what this
// store commits changes it in any case.
func TestPetsVersionChangesWithEachCommit(t *testing.T) {
	s := openTest(t)
	other, err := sql.Open("sqlite", s.path)
	must(t, err)
	defer other.Close()
	other.SetMaxOpenConns(1)
	create := func() {
		_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
		must(t, err)
	}
	execute := func(statements ...string) func() {
		return func() {
			for _, text := range append([]string{"PRAGMA busy_timeout = 5000"}, statements...) {
				if _, err := other.ExecContext(t.Context(), text); err != nil {
					t.Fatalf("%s: %v", text, err)
				}
			}
		}
	}
	changes := map[string]func(){
		"a pet":                      create,
		"an update":                  execute("UPDATE pets SET status = 'sold' WHERE id = 1"),
		"VACUUM":                     execute("VACUUM"),
		"a write after a checkpoint": execute("PRAGMA wal_checkpoint(RESTART)", "UPDATE pets SET name = name || 'x' WHERE id = 1"),
		"a write after truncation":   execute("PRAGMA wal_checkpoint(TRUNCATE)", "UPDATE pets SET name = 'x' WHERE id = 1"),
	}
	stays := map[string]func(){
		"nothing":              func() {},
		"a rollback":           execute("BEGIN IMMEDIATE", "UPDATE pets SET status = 'sold'", "ROLLBACK"),
		"a list":               func() { names(t, s) },
		"a passive checkpoint": execute("PRAGMA wal_checkpoint(PASSIVE)"),
	}
	steps := slices.Concat(slices.Sorted(maps.Keys(changes)), slices.Sorted(maps.Keys(stays)))
	create()
	r := rand.New(rand.NewPCG(1, 2))
	for range 100 {
		name := steps[r.IntN(len(steps))]
		before := askedVersion(t, s)
		if do := changes[name]; do != nil {
			do()
		} else {
			stays[name]()
		}
		if after := askedVersion(t, s); (after != before) != (changes[name] != nil) {
			t.Errorf("%s: the version went from %d to %d", name, before, after)
		}
	}
	s.Close()
	s.watch.asked.Store(-int64(time.Hour))
	if _, ok := s.PetsVersion(); ok {
		t.Error("PetsVersion after Close = true, want false")
	}
}

// What this store commits changes the number before it is acknowledged, although SQLite is not
// asked.
func TestPetsVersionChangesBeforeTheAcknowledgement(t *testing.T) {
	s := openTest(t)
	s.watch.asked.Store(int64(time.Hour))
	committed := s.writer.committed
	s.writer.committed = func() {
		time.Sleep(20 * time.Millisecond) // for an acknowledgement that would come first
		committed()
	}
	before, _ := s.PetsVersion()
	_, err := s.CreatePet(t.Context(), store.NewPet{Name: "Rex"})
	must(t, err)
	if after, ok := s.PetsVersion(); !ok || after == before {
		t.Errorf("after a pet is acknowledged, PetsVersion = %d, %t, want another number than %d", after, ok, before)
	}
}
