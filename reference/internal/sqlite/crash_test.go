package sqlite_test

import (
	"fmt"
	"iter"
	"testing"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

func TestKilledProcessLosesNoAcknowledgedPet(t *testing.T) {
	path := tempDatabase(t)
	acknowledged := map[int64]int64{} // category by ID, of all the processes
	for round := range 3 {
		for _, line := range killAfter(t, program(t, "create pets without end", path), 300) {
			var id, category int64
			if _, err := fmt.Sscanf(line, "%d %d", &id, &category); err != nil {
				t.Fatalf("the process printed %q", line)
			}
			if other, twice := acknowledged[id]; twice {
				t.Errorf("round %d: ID %d was given to category %d and again to %d", round, id, other, category)
			}
			acknowledged[id] = category
		}

		s := open(t, path, sqlite.Options{})
		lost := 0
		for id, category := range acknowledged {
			pet, err := s.Pet(t.Context(), id)
			want := store.Pet{ID: id, Name: fmt.Sprint(category), CategoryID: category, Status: store.Available}
			if err != nil || pet != want {
				if lost++; lost <= 3 {
					t.Errorf("round %d: acknowledged pet %+v is now %+v, %v", round, want, pet, err)
				}
			}
		}
		if lost > 0 {
			t.Fatalf("round %d: %d of %d acknowledged pets are lost", round, lost, len(acknowledged))
		}
		if err := s.Close(); err != nil {
			t.Fatalf("Close = %v", err)
		}
		checkIntegrity(t, path)
	}
}

func TestKilledProcessKeepsSavedUsage(t *testing.T) {
	path := sqlite.UsagePath(tempDatabase(t))
	killAfter(t, program(t, "save usage and wait", path), 1)

	u, err := sqlite.OpenUsage(t.Context(), path, sqlite.Options{})
	if err != nil {
		t.Fatalf("OpenUsage after a kill = %v", err)
	}
	defer u.Close()
	err = u.LoadUsage(t.Context(), func(header []byte, portions iter.Seq[[]memory.Record]) error {
		n := 0
		for portion := range portions {
			n += len(portion)
		}
		if string(header) != "99" || n != 100 {
			t.Errorf("header %q and %d records are left, want 99 and 100", header, n)
		}
		return nil
	})
	if err != nil {
		t.Errorf("LoadUsage = %v", err)
	}
}
