package storetest

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var deprecatedTests = []test{
	{"counts add up and the later time stays", testUseSums},
	{"of several uses with one that is not valid none is counted", testUseInvalid},
	{"counting at once loses nothing", testUseTogether},
}

func use(operation, owner string, count int64, last time.Time) store.DeprecatedUse {
	return store.DeprecatedUse{Operation: operation, Owner: owner, Count: count, Last: last}
}

func testUseSums(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	checkUse(t, s)
	later := start.Add(time.Hour)
	for _, uses := range [][]store.DeprecatedUse{
		{use("getPet", "ada", 2, later), use("getPet", "bob", 7, start)},
		{},
		{use("getPet", "ada", 3, start), use("getPet", "ada", 1, start)},
		{use("getPet", "cid", 7, start), use("delPet", "bob", 1, start)},
	} {
		if err := s.AddDeprecatedUse(t.Context(), uses...); err != nil {
			t.Fatalf("AddDeprecatedUse(%v) = %v", uses, err)
		}
	}
	checkUse(t, s,
		use("delPet", "bob", 1, kept(start)),
		use("getPet", "bob", 7, kept(start)),
		use("getPet", "cid", 7, kept(start)),
		use("getPet", "ada", 6, kept(later)),
	)
}

func checkUse(t *testing.T, s store.DeprecatedUses, want ...store.DeprecatedUse) {
	t.Helper()
	got, err := s.ListDeprecatedUse(t.Context())
	if err != nil {
		t.Fatalf("ListDeprecatedUse = %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ListDeprecatedUse (-want +got):\n%s", diff)
	}
}

func testUseInvalid(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for name, bad := range map[string]store.DeprecatedUse{
		"no operation":   use("", "ada", 1, start),
		"no owner":       use("getPet", "", 1, start),
		"no count":       use("getPet", "ada", 0, start),
		"negative count": use("getPet", "ada", -1, start),
		"no time":        use("getPet", "ada", 1, time.Time{}),
	} {
		err := s.AddDeprecatedUse(t.Context(), use("getPet", "bob", 1, start), bad)
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: AddDeprecatedUse = %v, want an error that wraps ErrInvalid", name, err)
		}
	}
	checkUse(t, s)
}

func testUseTogether(t *testing.T, db Opener[store.Store]) {
	handles := []store.Store{db.open(t), db.open(t)}
	together(8, func(i int) {
		for range 4 {
			if err := handles[i%2].AddDeprecatedUse(t.Context(), use("getPet", "ada", 1, start)); err != nil {
				t.Errorf("AddDeprecatedUse = %v", err)
			}
		}
	})
	checkUse(t, handles[0], use("getPet", "ada", 32, kept(start)))
}
