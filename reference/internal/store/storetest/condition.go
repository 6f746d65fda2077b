package storetest

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var conditionTests = []test{
	{"a condition decides whether a pet is created", testCondition},
	{"a condition is not asked about a request that is sent again", testConditionReplay},
	{"of many requests with one condition, one creates a pet", testConditionTogether},
}

type lister = func(store.ListQuery) ([]store.Pet, bool, error)

func yes(lister) (bool, error) { return true, nil }
func no(lister) (bool, error)  { return false, nil }

func testCondition(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	broken := errors.New("broken")
	for _, k := range []*store.IdempotencyKey{nil, new(onceKey("ada", "k", 1, start))} {
		for _, tt := range []struct {
			c    store.Condition
			want error
		}{
			{no, store.ErrCondition},
			{func(lister) (bool, error) { return false, broken }, broken},
		} {
			if pet, replayed, err := s.CreatePetIf(t.Context(), rex, k, tt.c); !errors.Is(err, tt.want) || replayed {
				t.Errorf("CreatePetIf = %+v, %v, %v, want an error that wraps %q", pet, replayed, err, tt.want)
			}
		}
	}
	checkPets(t, s, []store.Pet{}...)

	for _, q := range []store.ListQuery{{}, {Limit: store.MaxList + 1}, {Limit: 1, Status: "lost"}, {Limit: 1, After: -1}} {
		_, _, err := s.CreatePetIf(t.Context(), rex, nil, func(list lister) (bool, error) {
			_, _, err := list(q)
			return true, err
		})
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("CreatePetIf whose condition lists %+v = %v, want an error that wraps ErrInvalid", q, err)
		}
	}

	var want []store.Pet
	for range 3 {
		pet, replayed, err := s.CreatePetIf(t.Context(), rex, nil, func(list lister) (bool, error) {
			got, more, err := list(store.ListQuery{Limit: 2, Status: store.Pending})
			if d := cmp.Diff(want[:min(len(want), 2)], got); len(got) > 0 && d != "" || more != (len(want) > 2) || err != nil {
				t.Errorf("the condition sees %+v, %v, %v, want %+v", got, more, err, want)
			}
			got, _, err = list(store.ListQuery{Limit: 9})
			return len(got) == len(want), err
		})
		if err != nil || replayed {
			t.Fatalf("CreatePetIf = %+v, %v, %v", pet, replayed, err)
		}
		want = append(want, pet)
	}
	checkPets(t, s, want...)
	for _, p := range []store.NewPet{{}, {Name: "x", Status: "lost"}} {
		if _, _, err := s.CreatePetIf(t.Context(), p, nil, yes); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("CreatePetIf(%+v) = %v, want an error that wraps ErrInvalid", p, err)
		}
	}
	if _, _, err := s.CreatePetIf(t.Context(), rex, &store.IdempotencyKey{}, yes); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("CreatePetIf with an empty key = %v, want an error that wraps ErrInvalid", err)
	}
	checkPets(t, s, want...)
}

func testConditionReplay(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	k := onceKey("ada", "k", 1, start)
	first, replayed, err := s.CreatePetIf(t.Context(), rex, &k, yes)
	if err != nil || replayed {
		t.Fatalf("CreatePetIf = %+v, %v, %v", first, replayed, err)
	}
	if pet, replayed, err := s.CreatePetIf(t.Context(), cat, &k, no); pet != first || !replayed || err != nil {
		t.Errorf("CreatePetIf, sent again = %+v, %v, %v, want %+v, replayed", pet, replayed, err, first)
	}
	createOnce(t, s, cat, k, true)
	k.Fingerprint[0]++
	if _, _, err := s.CreatePetIf(t.Context(), cat, &k, no); !errors.Is(err, store.ErrMismatch) {
		t.Errorf("CreatePetIf with another fingerprint = %v, want an error that wraps ErrMismatch", err)
	}
	checkPets(t, s, first)
}

func testConditionTogether(t *testing.T, db Opener[store.Store]) {
	handles := []store.Store{db.open(t), db.open(t)}
	const rounds = 6
	for n := range rounds {
		var created atomic.Int32
		together(24, func(i int) { // enough for several to be written in one transaction
			_, _, err := handles[i/16].CreatePetIf(t.Context(), rex, nil, func(list lister) (bool, error) {
				pets, _, err := list(store.ListQuery{Limit: store.MaxList})
				return len(pets) == n, err
			})
			if err == nil {
				created.Add(1)
			} else if !errors.Is(err, store.ErrCondition) {
				t.Errorf("CreatePetIf = %v", err)
			}
		})
		if created.Load() != 1 {
			t.Errorf("round %d: %d calls created a pet, want 1", n, created.Load())
		}
	}
	if got := list(t, handles[0], store.ListQuery{Limit: store.MaxList}); len(got) != rounds {
		t.Errorf("%d pets are stored, want %d", len(got), rounds)
	}
}
