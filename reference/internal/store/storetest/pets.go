package storetest

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var petTests = []test{
	{"a pet is read back as it was created", testPetValues},
	{"a pet that does not exist is not found", testPetNotFound},
	{"creating at once loses nothing", testPetsTogether},
	{"a page holds the first pets after an ID", testListPages},
	{"a page can be of one status", testListStatus},
	{"a walk meets what was there once, whatever is written", testListWalk},
	{"pets and keys of requests are there after Close and Open", testPetReopen},
}

func create(t *testing.T, s store.Pets, p store.NewPet) store.Pet {
	t.Helper()
	pet, err := s.CreatePet(t.Context(), p)
	if err != nil {
		t.Fatalf("CreatePet(%+v) = %v", p, err)
	}
	return pet
}

func testPetValues(t *testing.T, db Opener) {
	s, other := db.open(t), db.open(t)
	var all []store.Pet
	for _, p := range []store.NewPet{
		{Name: "Rex", CategoryID: 1, Status: store.Available},
		{Name: "Rex", CategoryID: 1}, // available too; equal pets are two pets
		{Name: "O'Malley; DROP TABLE pets --", CategoryID: 0, Status: store.Pending},
		{Name: "Žofka \u202e 🐈\u200d⬛", CategoryID: -1, Status: store.Sold},
		{Name: " ", CategoryID: math.MaxInt64, Status: store.Sold},
		{Name: "1 2 sold 3 Rex", CategoryID: 5, Status: store.Available}, // a pet in a text of pets
		{Name: "  4 5  \u2028,'\"\\", CategoryID: -5, Status: store.Sold},
		{Name: strings.Repeat("🐈", store.MaxText), CategoryID: math.MinInt64, Status: store.Sold},
	} {
		made := create(t, s, p)
		want := store.Pet{ID: made.ID, Name: p.Name, CategoryID: p.CategoryID, Status: p.Status}
		if p.Status == "" {
			want.Status = store.Available
		}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("CreatePet returned another pet (-want +got):\n%s", diff)
		}
		got, err := other.Pet(t.Context(), made.ID) // another handle reads it immediately
		if err != nil {
			t.Fatalf("Pet(%d) = %v", made.ID, err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Pet returned another pet (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff([]store.Pet{want}, list(t, s, store.ListQuery{Limit: 1, After: made.ID - 1})); diff != "" {
			t.Errorf("ListPets returned another pet (-want +got):\n%s", diff)
		}
		all = append(all, want)
	}
	if all[0].ID != 1 {
		t.Errorf("the first pet has ID %d, want 1", all[0].ID)
	}
	checkPets(t, s, all...) // in the order in which they were created
}

func testPetNotFound(t *testing.T, db Opener) {
	s := db.open(t)
	made := create(t, s, store.NewPet{Name: "Rex"})
	for _, id := range []int64{0, -1, made.ID + 1, math.MaxInt64, math.MinInt64} {
		if pet, err := s.Pet(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Pet(%d) = %+v, %v, want an error that wraps ErrNotFound", id, pet, err)
		}
	}
}

func testPetsTogether(t *testing.T, db Opener) {
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

func testPetReopen(t *testing.T, db Opener) {
	s := db.open(t)
	k := onceKey("ada", "k", 1, start)
	want := createOnce(t, s, rex, k, false)
	if err := s.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	s = db.open(t)
	if got := createOnce(t, s, cat, k, true); got != want {
		t.Errorf("after reopening CreatePetOnce returned %+v, want %+v", got, want)
	}
	if next := create(t, s, rex); next.ID <= want.ID {
		t.Errorf("the next pet after reopening has ID %d, want one over %d", next.ID, want.ID)
	}
	if got, err := s.Pet(t.Context(), want.ID); err != nil || got != want {
		t.Errorf("Pet(%d) after reopening = %+v, %v, want %+v", want.ID, got, err, want)
	}
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

func testListPages(t *testing.T, db Opener) {
	s := db.open(t)
	checkList(t, s, store.ListQuery{Limit: 1}, []int64{}, false)
	checkList(t, s, store.ListQuery{Limit: store.MaxList}, []int64{}, false)
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

func testListStatus(t *testing.T, db Opener) {
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

func testListWalk(t *testing.T, db Opener) {
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

var onceTests = []test{
	{"a request that is sent again, or with its key, creates nothing", testOnceReplay},
	{"a key is forgotten after its lifetime", testOnceExpiry},
	{"of one request sent many times at once, one creates the pet", testOnceTogether},
}

func onceKey(owner, key string, fingerprint byte, at time.Time) store.IdempotencyKey {
	return store.IdempotencyKey{Owner: owner, Key: key, Fingerprint: [32]byte{31: fingerprint}, At: at}
}

// createOnce creates a pet and checks whether that was a replay.
func createOnce(t *testing.T, s store.Pets, p store.NewPet, k store.IdempotencyKey, wantReplay bool) store.Pet {
	t.Helper()
	pet, replayed, err := s.CreatePetOnce(t.Context(), p, k)
	if err != nil || replayed != wantReplay {
		t.Fatalf("CreatePetOnce(%+v, %+v) = %+v, %v, %v, want replayed %v", p, k, pet, replayed, err, wantReplay)
	}
	return pet
}

// rex is a pet, and cat what a request that is sent again must not create.
var (
	rex = store.NewPet{Name: "Rex", CategoryID: 7, Status: store.Pending}
	cat = store.NewPet{Name: "Tom"}
)

func checkPets(t *testing.T, s store.Pets, want ...store.Pet) {
	t.Helper()
	if diff := cmp.Diff(want, list(t, s, store.ListQuery{Limit: store.MaxList})); diff != "" {
		t.Errorf("the pets (-want +got):\n%s", diff)
	}
}

func testOnceReplay(t *testing.T, db Opener) {
	s := db.open(t)
	k := onceKey("ada", "k", 1, start)
	first := createOnce(t, s, rex, k, false)
	want := store.Pet{ID: first.ID, Name: "Rex", CategoryID: 7, Status: store.Pending}
	if first != want || first.ID < 1 {
		t.Errorf("CreatePetOnce returned %+v, want %+v with an ID", first, want)
	}
	for _, at := range []time.Time{start, start.Add(time.Hour), start.Add(store.IdempotencyLifetime - time.Microsecond), start.Add(-time.Hour)} {
		k.At = at
		if got := createOnce(t, s, cat, k, true); got != first {
			t.Errorf("at %v CreatePetOnce returned %+v, want the first pet %+v", at, got, first)
		}
	}
	k = onceKey("ada", "k", 2, start)
	if pet, _, err := s.CreatePetOnce(t.Context(), cat, k); !errors.Is(err, store.ErrMismatch) {
		t.Errorf("CreatePetOnce with another fingerprint = %+v, %v, want an error that wraps ErrMismatch", pet, err)
	}
	// Other owners and other keys are other requests. Keys are compared by bytes.
	pets := []store.Pet{first}
	for _, k := range []store.IdempotencyKey{onceKey("bob", "k", 1, start), onceKey("ada", "K", 1, start), onceKey("ada", "k ", 1, start)} {
		pets = append(pets, createOnce(t, s, rex, k, false))
	}
	checkPets(t, s, pets...)
}

func testOnceExpiry(t *testing.T, db Opener) {
	s := db.open(t)
	var pets []store.Pet
	for i := range 20 {
		pets = append(pets, createOnce(t, s, rex, onceKey("ada", fmt.Sprint(i), 1, start), false))
	}
	next := start.Add(store.IdempotencyLifetime)
	for i := range 20 {
		// Another fingerprint makes no difference: it is a new request.
		pets = append(pets, createOnce(t, s, cat, onceKey("ada", fmt.Sprint(i), 2, next), false))
	}
	for i := range 20 {
		if got := createOnce(t, s, rex, onceKey("ada", fmt.Sprint(i), 2, next), true); got != pets[20+i] {
			t.Errorf("CreatePetOnce returned %+v, want the pet of the second request %+v", got, pets[20+i])
		}
	}
	checkPets(t, s, pets...)
}

func testOnceTogether(t *testing.T, db Opener) {
	handles := []store.Store{db.open(t), db.open(t)}
	const callers, requests = 8, 4
	var created atomic.Int32
	var pets [callers][requests]store.Pet
	together(callers, func(i int) {
		for n := range requests {
			pet, replayed, err := handles[i%2].CreatePetOnce(t.Context(), rex, onceKey("ada", fmt.Sprint(n), 1, start))
			if err != nil {
				t.Errorf("CreatePetOnce = %v", err)
			}
			if !replayed {
				created.Add(1)
			}
			pets[i][n] = pet
		}
	})
	for i := range callers {
		if pets[i] != pets[0] {
			t.Errorf("callers got %v and %v, want the same pets", pets[i], pets[0])
		}
	}
	if got := list(t, handles[0], store.ListQuery{Limit: store.MaxList}); len(got) != requests || created.Load() != requests {
		t.Errorf("%d pets are stored and %d calls created one, want %d", len(got), created.Load(), requests)
	}
}
