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
	{"recent requests are counted by day", testUseRecent},
	{"texts are ordered by their bytes", testUseOrder},
	{"of several uses with one that is not valid none is counted", testUseInvalid},
	{"counting at once loses nothing", testUseTogether},
}

func use(operation, owner string, count int64, last time.Time) store.DeprecatedUse {
	return store.DeprecatedUse{Operation: operation, Owner: owner, Count: count, Last: last}
}

func testUseSums(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	checkUse(t, s, start)
	later := start.Add(time.Hour)
	addUse(t, s, use("getPet", "ada", 2, later), use("getPet", "bob", 7, start))
	addUse(t, s)
	addUse(t, s, use("getPet", "ada", 3, start), use("getPet", "ada", 1, start))
	addUse(t, s, use("getPet", "cid", 7, start), use("delPet", "bob", 1, start))
	checkUse(t, s, start,
		recent(use("delPet", "bob", 1, kept(start)), 1),
		recent(use("getPet", "bob", 7, kept(start)), 7),
		recent(use("getPet", "cid", 7, kept(start)), 7),
		recent(use("getPet", "ada", 6, kept(later)), 6),
	)
}

// testUseOrder has texts that people would order in another way.
func testUseOrder(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	var want []store.DeprecatedUse
	for _, text := range []string{" b", "-a", "A", "Z", "a", "a b", "aB", "ab", "b", "é", "\U0001f408"} {
		addUse(t, s, use("getPet", text, 1, start), use(text, "ada", 1, start))
	}
	for _, operation := range []string{" b", "-a", "A", "Z", "a", "a b", "aB", "ab", "b"} {
		want = append(want, recent(use(operation, "ada", 1, kept(start)), 1))
	}
	for _, owner := range []string{" b", "-a", "A", "Z", "a", "a b", "aB", "ab", "b", "é", "\U0001f408"} {
		want = append(want, recent(use("getPet", owner, 1, kept(start)), 1))
	}
	for _, operation := range []string{"é", "\U0001f408"} {
		want = append(want, recent(use(operation, "ada", 1, kept(start)), 1))
	}
	checkUse(t, s, start, want...)
}

func testUseRecent(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	yesterday, lastWeek := start.AddDate(0, 0, -1), start.AddDate(0, 0, -7)
	addUse(t, s, use("getPet", "ada", 100, lastWeek), use("getPet", "bob", 50, lastWeek))
	addUse(t, s, use("getPet", "ada", 10, yesterday), use("getPet", "ada", 1, start))
	for _, tt := range []struct {
		since    time.Time
		ada, bob int64
	}{
		{start.AddDate(0, 0, 1), 0, 0},
		{today.Add(24*time.Hour - 1), 1, 0},
		{today, 1, 0},
		{today.Add(-1), 11, 0},
		{today.AddDate(0, 0, -7).Add(24*time.Hour - 1), 111, 50}, // in the time zone of start it is the next day
		{time.Time{}, 111, 50},
	} {
		checkUse(t, s, tt.since,
			recent(use("getPet", "ada", 111, kept(start)), tt.ada), recent(use("getPet", "bob", 50, kept(lastWeek)), tt.bob))
	}

	// What is removed is only when the requests were sent.
	if err := s.PruneDailyUse(t.Context(), yesterday); err != nil {
		t.Fatalf("PruneDailyUse = %v", err)
	}
	checkUse(t, s, time.Time{},
		recent(use("getPet", "ada", 111, kept(start)), 11), recent(use("getPet", "bob", 50, kept(lastWeek)), 0))
}

func recent(u store.DeprecatedUse, n int64) store.DeprecatedUse {
	u.Recent = n
	return u
}

func addUse(t *testing.T, s store.DeprecatedUses, uses ...store.DeprecatedUse) {
	t.Helper()
	if err := s.AddDeprecatedUse(t.Context(), uses...); err != nil {
		t.Fatalf("AddDeprecatedUse(%v) = %v", uses, err)
	}
}

func checkUse(t *testing.T, s store.DeprecatedUses, since time.Time, want ...store.DeprecatedUse) {
	t.Helper()
	got, err := s.ListDeprecatedUse(t.Context(), since)
	if err != nil {
		t.Fatalf("ListDeprecatedUse = %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ListDeprecatedUse since %v (-want +got):\n%s", since, diff)
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
	checkUse(t, s, start)
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
	checkUse(t, handles[0], start, recent(use("getPet", "ada", 32, kept(start)), 32))
}
