package storetest

import (
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var dailyTests = []test{
	{"the counts of a day add up", testDaySums},
	{"days are listed from the day of an instant", testDaySince},
	{"old days are removed", testDayPrune},
	{"of several days with one that is not valid none is counted", testDayInvalid},
	{"counting at once loses nothing", testDayTogether},
}

func day(owner string, day time.Time, allowed, denied int64) store.DailyUse {
	return store.DailyUse{Owner: owner, Day: day, Allowed: allowed, Denied: denied}
}

func addDays(t *testing.T, s store.DailyUses, uses ...store.DailyUse) {
	t.Helper()
	if err := s.AddDailyUse(t.Context(), uses...); err != nil {
		t.Fatalf("AddDailyUse = %v", err)
	}
}

func checkDays(t *testing.T, s store.DailyUses, owner string, since time.Time, want ...store.DailyUse) {
	t.Helper()
	got, err := s.ListDailyUse(t.Context(), owner, since)
	if err != nil || got == nil {
		t.Fatalf("ListDailyUse = %v, %v, want a slice that is not nil", got, err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ListDailyUse(%q, %v) (-want +got):\n%s", owner, since, diff)
	}
}

func testDaySums(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	checkDays(t, s, "ada", time.Time{})
	addDays(t, s, day("ada", today, 2, 0), day("bob", today, 0, 7))
	addDays(t, s)
	addDays(t, s, day("ada", today, 3, 1), day("ada", today, 0, 4))
	checkDays(t, s, "ada", time.Time{}, day("ada", today, 5, 5))
	checkDays(t, s, "bob", time.Time{}, day("bob", today, 0, 7))
	checkDays(t, s, "cid", time.Time{})
	checkDays(t, s, "%", time.Time{})
}

func testDaySince(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	var all []store.DailyUse
	for _, ago := range []int{300, 89, 2, 0, -1} {
		u := day("ada", today.AddDate(0, 0, -ago), int64(ago+1), 0)
		all = append(all, u)
		addDays(t, s, u, day("bob", u.Day, 1, 1))
	}
	addDays(t, s, day("bob", today.AddDate(0, 0, -1), 1, 1)) // on which ada sent none
	checkDays(t, s, "ada", time.Time{}, all...)
	checkDays(t, s, "ada", today.AddDate(-100, 0, 0), all...)
	checkDays(t, s, "ada", today.AddDate(0, 0, -89), all[1:]...)
	checkDays(t, s, "ada", today.AddDate(0, 0, -2).Add(24*time.Hour-1), all[2:]...)
	checkDays(t, s, "ada", today.AddDate(0, 0, -1), all[3:]...)
	// At this instant in its own time zone, it is the day after.
	checkDays(t, s, "ada", today.Add(23*time.Hour).In(start.Location()), all[3:]...)
	checkDays(t, s, "ada", today.AddDate(0, 0, 2))
	// No owner has such a name.
	checkDays(t, s, "ada\x00", time.Time{})
	checkDays(t, s, "\xff", time.Time{})
}

func testDayPrune(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	prune := func(before time.Time) {
		t.Helper()
		if err := s.PruneDailyUse(t.Context(), before); err != nil {
			t.Fatalf("PruneDailyUse = %v", err)
		}
	}
	prune(start) // of nothing
	yesterday := today.AddDate(0, 0, -1)
	many := []store.DailyUse{day("ada", today, 1, 0), day("ada", yesterday, 1, 0)}
	for i := range 5000 {
		many = append(many, day(fmt.Sprint(i), yesterday, 1, 0))
	}
	addDays(t, s, many...)
	prune(yesterday.Add(24*time.Hour - 1))
	checkDays(t, s, "ada", time.Time{}, many[1], many[0])
	checkDays(t, s, "4999", time.Time{}, day("4999", yesterday, 1, 0))
	prune(start)
	checkDays(t, s, "ada", time.Time{}, many[0])
	checkDays(t, s, "0", time.Time{})
	checkDays(t, s, "4999", time.Time{})
}

func testDayInvalid(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for name, bad := range map[string]store.DailyUse{
		"no owner":               day("", today, 1, 0),
		"no day":                 day("ada", time.Time{}, 1, 0),
		"not the start of a day": day("ada", today.Add(time.Second), 1, 0),
		"00:00 elsewhere":        day("ada", time.Date(2026, time.May, 4, 0, 0, 0, 0, start.Location()), 1, 0),
		"negative count":         day("ada", today, -1, 2),
		"negative denials":       day("ada", today, 1, -1),
	} {
		if err := s.AddDailyUse(t.Context(), day("bob", today, 1, 0), bad); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: AddDailyUse = %v, want an error that wraps ErrInvalid", name, err)
		}
	}
	checkDays(t, s, "ada", time.Time{})
	checkDays(t, s, "bob", time.Time{})
}

func testDayTogether(t *testing.T, db Opener[store.Store]) {
	handles := []store.Store{db.open(t), db.open(t)}
	together(8, func(i int) {
		for range 4 {
			if err := handles[i%2].AddDailyUse(t.Context(), day("ada", today, 1, 2)); err != nil {
				t.Errorf("AddDailyUse = %v", err)
			}
		}
	})
	checkDays(t, handles[0], "ada", today, day("ada", today, 32, 64))
}
