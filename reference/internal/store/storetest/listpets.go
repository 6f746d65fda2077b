package storetest

import (
	"errors"
	"math"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

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
