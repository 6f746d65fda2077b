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

func list(t *testing.T, s store.Pets, q store.ListQuery) []store.Pet {
	t.Helper()
	pets, _, err := s.ListPets(t.Context(), q)
	if err != nil {
		t.Fatalf("ListPets(%+v) = %v", q, err)
	}
	return pets
}

func ids(pets []store.Pet) []int64 {
	got := []int64{}
	for _, p := range pets {
		got = append(got, p.ID)
	}
	return got
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

func testListPages(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for _, tt := range []struct {
		limit int
		after int64
		want  []int64
		more  bool
	}{
		{limit: 1, want: []int64{}},
		{limit: store.MaxList, want: []int64{}},
	} {
		checkList(t, s, store.ListQuery{Limit: tt.limit, After: tt.after}, tt.want, tt.more)
	}
	var id []int64
	for range 5 {
		id = append(id, create(t, s, store.NewPet{Name: "Rex"}).ID)
	}
	for _, tt := range []struct {
		limit int
		after int64
		want  []int64
		more  bool
	}{
		{limit: 1, want: id[:1], more: true},
		{limit: 4, want: id[:4], more: true},
		{limit: 5, want: id, more: false}, // no empty page is left
		{limit: 6, want: id, more: false},
		{limit: store.MaxList, want: id, more: false},
		{limit: 2, after: id[1], want: id[2:4], more: true},
		{limit: 3, after: id[1], want: id[2:], more: false},
		{limit: 2, after: id[4], want: []int64{}, more: false},
		{limit: 2, after: id[4] + 100, want: []int64{}, more: false},
		{limit: 2, after: math.MaxInt64, want: []int64{}, more: false},
	} {
		checkList(t, s, store.ListQuery{Limit: tt.limit, After: tt.after}, tt.want, tt.more)
	}
}

func testListStatus(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	byStatus := map[store.Status][]int64{}
	for _, status := range []store.Status{
		store.Sold, store.Available, store.Sold, store.Pending, store.Sold, store.Available,
	} {
		byStatus[status] = append(byStatus[status], create(t, s, store.NewPet{Name: "Rex", Status: status}).ID)
	}
	sold, available := byStatus[store.Sold], byStatus[store.Available]
	for _, tt := range []struct {
		query store.ListQuery
		want  []int64
		more  bool
	}{
		{store.ListQuery{Limit: 10, Status: store.Pending}, byStatus[store.Pending], false},
		{store.ListQuery{Limit: 10, Status: store.Sold}, sold, false},
		{store.ListQuery{Limit: 2, Status: store.Sold}, sold[:2], true},
		{store.ListQuery{Limit: 3, Status: store.Sold}, sold, false},
		{store.ListQuery{Limit: 2, Status: store.Sold, After: sold[0]}, sold[1:], false},
		// After may be a pet of another status.
		{store.ListQuery{Limit: 2, Status: store.Available, After: sold[1]}, available[1:], false},
		{store.ListQuery{Limit: 2, Status: store.Pending, After: sold[2]}, []int64{}, false},
	} {
		checkList(t, s, tt.query, tt.want, tt.more)
	}
}

func checkList(t *testing.T, s store.Pets, q store.ListQuery, want []int64, wantMore bool) {
	t.Helper()
	pets, more, err := s.ListPets(t.Context(), q)
	if err != nil {
		t.Fatalf("ListPets(%+v) = %v", q, err)
	}
	if pets == nil {
		t.Errorf("ListPets(%+v) = nil, want a slice that is not", q)
	}
	if diff := cmp.Diff(want, ids(pets)); diff != "" {
		t.Errorf("ListPets(%+v) returned other pets (-want +got):\n%s", q, diff)
	}
	if more != wantMore {
		t.Errorf("ListPets(%+v): more = %v, want %v", q, more, wantMore)
	}
}

func testListInvalid(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for name, q := range map[string]store.ListQuery{
		"no limit":       {},
		"negative limit": {Limit: -1},
		"large limit":    {Limit: store.MaxList + 1},
		"unknown status": {Limit: 1, Status: "eaten"},
		"negative after": {Limit: 1, After: -1},
	} {
		if pets, _, err := s.ListPets(t.Context(), q); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: ListPets = %v, %v, want an error that wraps ErrInvalid", name, pets, err)
		}
	}
}

func testListWalk(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	var before []int64
	for range 50 {
		before = append(before, create(t, s, store.NewPet{Name: "old"}).ID)
	}
	stop, stopped := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			default:
			}
			if _, err := s.CreatePet(t.Context(), store.NewPet{Name: "new"}); err != nil {
				t.Errorf("CreatePet during the walk = %v", err)
				return
			}
		}
	}()

	met := map[int64]int{}
	q := store.ListQuery{Limit: 3}
	for more := true; more && q.After < before[len(before)-1]; {
		var pets []store.Pet
		var err error
		if pets, more, err = s.ListPets(t.Context(), q); err != nil {
			t.Fatalf("ListPets(%+v) = %v", q, err)
		}
		if len(pets) == 0 {
			t.Fatalf("ListPets(%+v) is empty though the page before said that there is more", q)
		}
		for _, p := range pets {
			met[p.ID]++
			q.After = p.ID
		}
	}
	close(stop)
	<-stopped
	for _, id := range before {
		if met[id] != 1 {
			t.Errorf("the walk met pet %d %d times, want once", id, met[id])
		}
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
