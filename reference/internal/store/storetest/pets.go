package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var petTests = []test{
	{"a pet is read back as it was created", testPetValues},
	{"status defaults to available", testPetDefaultStatus},
	{"a pet that is not valid is refused and not stored", testPetInvalid},
	{"a pet that does not exist is not found", testPetNotFound},
	{"IDs begin at 1 and rise", testPetIDs},
	{"creating at once loses nothing", testPetsTogether},
	{"a page holds the first pets after an ID", testListPages},
	{"a page can be of one status", testListStatus},
	{"a query that is not valid is refused", testListInvalid},
	{"a walk meets what was there once, whatever is written", testListWalk},
	{"another handle reads it at once", testPetOtherHandle},
	{"pets are there after Close and Open", testPetReopen},
}

func create(t *testing.T, s store.Pets, p store.NewPet) store.Pet {
	t.Helper()
	pet, err := s.CreatePet(t.Context(), p)
	if err != nil {
		t.Fatalf("CreatePet(%+v) = %v", p, err)
	}
	return pet
}

func testPetValues(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for _, p := range []store.NewPet{
		{Name: "Rex", CategoryID: 1, Status: store.Available},
		{Name: "Rex", CategoryID: 1, Status: store.Available}, // equal pets are two pets
		{Name: "O'Malley; DROP TABLE pets --", CategoryID: 0, Status: store.Pending},
		{Name: "Žofka \u202e 🐈\u200d⬛", CategoryID: -1, Status: store.Sold},
		{Name: " ", CategoryID: math.MaxInt64, Status: store.Sold},
		{Name: strings.Repeat("🐈", store.MaxText), CategoryID: math.MinInt64, Status: store.Sold},
	} {
		made := create(t, s, p)
		want := store.Pet{ID: made.ID, Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("CreatePet returned another pet (-want +got):\n%s", diff)
		}
		got, err := s.Pet(t.Context(), made.ID)
		if err != nil {
			t.Fatalf("Pet(%d) = %v", made.ID, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Pet returned another pet (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]store.Pet{want}, list(t, s, store.ListQuery{Limit: 1, After: made.ID - 1})); diff != "" {
			t.Errorf("ListPets returned another pet (-want +got):\n%s", diff)
		}
	}
}

func testPetDefaultStatus(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	made := create(t, s, store.NewPet{Name: "Rex"})
	if made.Status != store.Available {
		t.Errorf("CreatePet without a status returned %q, want %q", made.Status, store.Available)
	}
	got, err := s.Pet(t.Context(), made.ID)
	if err != nil || got.Status != store.Available {
		t.Errorf("Pet returned status %q (%v), want %q", got.Status, err, store.Available)
	}
}

func testPetInvalid(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for name, p := range map[string]store.NewPet{
		"no name":        {Name: ""},
		"long name":      {Name: strings.Repeat("a", store.MaxText+1)},
		"NUL":            {Name: "Re\x00x"},
		"line feed":      {Name: "Rex\n"},
		"DEL":            {Name: "Rex\x7f"},
		"C1 control":     {Name: "Rex\u0085"},
		"not UTF-8":      {Name: "Rex\xff"},
		"unknown status": {Name: "Rex", Status: "eaten"},
		"case of status": {Name: "Rex", Status: "Sold"},
	} {
		if pet, err := s.CreatePet(t.Context(), p); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: CreatePet = %+v, %v, want an error that wraps ErrInvalid", name, pet, err)
		}
	}
	if pets := list(t, s, store.ListQuery{Limit: 10}); len(pets) > 0 {
		t.Errorf("pets that were refused are stored: %+v", pets)
	}
}

func testPetNotFound(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	made := create(t, s, store.NewPet{Name: "Rex"})
	for _, id := range []int64{0, -1, made.ID + 1, math.MaxInt64, math.MinInt64} {
		if pet, err := s.Pet(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Pet(%d) = %+v, %v, want an error that wraps ErrNotFound", id, pet, err)
		}
	}
}

func testPetIDs(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	last := int64(0)
	for range 5 {
		id := create(t, s, store.NewPet{Name: "Rex"}).ID
		if last == 0 && id != 1 {
			t.Errorf("the first pet has ID %d, want 1", id)
		}
		if id <= last {
			t.Errorf("pet %d was created after pet %d, want rising IDs", id, last)
		}
		last = id
	}
}

func testPetsTogether(t *testing.T, db Opener[store.Store]) {
	handles := []store.Store{db.open(t), db.open(t)}
	const callers, each = 16, 8
	made := make([][]store.Pet, callers)
	together(callers, func(i int) {
		for n := range each {
			p := store.NewPet{Name: fmt.Sprintf("pet %d of %d", n, i), CategoryID: int64(i)}
			if n == each/2 {
				// One that is refused does no harm to the others.
				if _, err := handles[i%2].CreatePet(t.Context(), store.NewPet{}); !errors.Is(err, store.ErrInvalid) {
					t.Errorf("CreatePet without a name = %v, want an error that wraps ErrInvalid", err)
				}
			}
			pet, err := handles[i%2].CreatePet(t.Context(), p)
			if err != nil {
				t.Errorf("CreatePet(%+v) = %v", p, err)
				continue
			}
			if pet.Name != p.Name || pet.CategoryID != p.CategoryID {
				t.Errorf("CreatePet(%+v) returned another caller's pet %+v", p, pet)
			}
			made[i] = append(made[i], pet)
		}
	})
	want := slices.Concat(made...)
	slices.SortFunc(want, func(a, b store.Pet) int { return int(a.ID - b.ID) })
	got := list(t, handles[0], store.ListQuery{Limit: store.MaxList})
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("what is stored is not what was acknowledged (-acknowledged +stored):\n%s", diff)
	}
}

func testPetOtherHandle(t *testing.T, db Opener[store.Store]) {
	a, b := db.open(t), db.open(t)
	for range 3 {
		want := create(t, a, store.NewPet{Name: "Rex"})
		if got, err := b.Pet(t.Context(), want.ID); err != nil || got != want {
			t.Errorf("Pet(%d) of the other handle = %+v, %v, want %+v", want.ID, got, err, want)
		}
		a, b = b, a
	}
}

func testPetReopen(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	want := create(t, s, store.NewPet{Name: "Rex", CategoryID: 7, Status: store.Pending})
	if err := s.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	s = db.open(t)
	if got, err := s.Pet(t.Context(), want.ID); err != nil || got != want {
		t.Errorf("Pet(%d) after reopening = %+v, %v, want %+v", want.ID, got, err, want)
	}
	if next := create(t, s, store.NewPet{Name: "Rex"}); next.ID <= want.ID {
		t.Errorf("the next pet after reopening has ID %d, want one over %d", next.ID, want.ID)
	}
}
