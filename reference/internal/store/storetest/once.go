package storetest

import (
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var onceTests = []test{
	{"a request that is sent again creates nothing", testOnceReplay},
	{"a key that is used for another request is refused", testOnceMismatch},
	{"a key is forgotten after its lifetime", testOnceExpiry},
	{"a request that is not valid is refused and its key not stored", testOnceInvalid},
	{"of one request sent many times at once, one creates the pet", testOnceTogether},
	{"a request is remembered after reopening", testOnceReopen},
}

func onceKey(owner, key string, fingerprint byte, at time.Time) store.IdempotencyKey {
	return store.IdempotencyKey{Owner: owner, Key: key, Fingerprint: [32]byte{31: fingerprint}, At: at}
}

// createOnce creates a pet and checks whether that was a replay.
func createOnce(t *testing.T, s store.Pets, p store.NewPet, k store.IdempotencyKey, wantReplay bool) store.Pet {
	t.Helper()
	pet, replayed, err := s.CreatePetIf(t.Context(), p, &k, nil)
	if err != nil || replayed != wantReplay {
		t.Fatalf("CreatePetIf(%+v, %+v) = %+v, %v, %v, want replayed %v", p, k, pet, replayed, err, wantReplay)
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

func testOnceReplay(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	k := onceKey("ada", "k", 1, start)
	first := createOnce(t, s, rex, k, false)
	want := store.Pet{ID: first.ID, Name: "Rex", CategoryID: 7, Status: store.Pending}
	if first != want || first.ID < 1 {
		t.Errorf("CreatePetIf returned %+v, want %+v with an ID", first, want)
	}
	for _, at := range []time.Time{start, start.Add(time.Hour), start.Add(store.IdempotencyLifetime - time.Microsecond), start.Add(-time.Hour)} {
		k.At = at
		if got := createOnce(t, s, cat, k, true); got != first {
			t.Errorf("at %v CreatePetIf returned %+v, want the first pet %+v", at, got, first)
		}
	}
	// Other owners and other keys are other requests. Keys are compared by bytes.
	pets := []store.Pet{first}
	for _, k := range []store.IdempotencyKey{onceKey("bob", "k", 1, start), onceKey("ada", "K", 1, start), onceKey("ada", "k ", 1, start)} {
		pets = append(pets, createOnce(t, s, rex, k, false))
	}
	checkPets(t, s, pets...)
}

func testOnceMismatch(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	first := createOnce(t, s, rex, onceKey("ada", "k", 1, start), false)
	if pet, _, err := s.CreatePetIf(t.Context(), cat, new(onceKey("ada", "k", 2, start)), nil); !errors.Is(err, store.ErrMismatch) {
		t.Errorf("CreatePetIf with another fingerprint = %+v, %v, want an error that wraps ErrMismatch", pet, err)
	}
	createOnce(t, s, rex, onceKey("ada", "k", 1, start), true)
	checkPets(t, s, first)
}

func testOnceExpiry(t *testing.T, db Opener[store.Store]) {
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
			t.Errorf("CreatePetIf returned %+v, want the pet of the second request %+v", got, pets[20+i])
		}
	}
	checkPets(t, s, pets...)
}

func testOnceInvalid(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for name, tt := range map[string]struct {
		pet store.NewPet
		key store.IdempotencyKey
	}{
		"no name":        {store.NewPet{}, onceKey("ada", "k", 1, start)},
		"no owner":       {rex, onceKey("", "k", 1, start)},
		"no key":         {rex, onceKey("ada", "", 1, start)},
		"control in key": {rex, onceKey("ada", "a\nb", 1, start)},
		"no time":        {rex, onceKey("ada", "k", 1, time.Time{})},
	} {
		if pet, _, err := s.CreatePetIf(t.Context(), tt.pet, &tt.key, nil); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: CreatePetIf = %+v, %v, want an error that wraps ErrInvalid", name, pet, err)
		}
	}
	checkPets(t, s, createOnce(t, s, rex, onceKey("ada", "k", 2, start), false))
}

func testOnceTogether(t *testing.T, db Opener[store.Store]) {
	handles := []store.Store{db.open(t), db.open(t)}
	const callers, requests = 8, 4
	var created atomic.Int32
	var pets [callers][requests]store.Pet
	together(callers, func(i int) {
		for n := range requests {
			pet, replayed, err := handles[i%2].CreatePetIf(t.Context(), rex, new(onceKey("ada", fmt.Sprint(n), 1, start)), nil)
			if err != nil {
				t.Errorf("CreatePetIf = %v", err)
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

func testOnceReopen(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	k := onceKey("ada", "k", 1, start)
	want := createOnce(t, s, rex, k, false)
	if err := s.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	if got := createOnce(t, db.open(t), cat, k, true); got != want {
		t.Errorf("after reopening CreatePetIf returned %+v, want %+v", got, want)
	}
}
