package storetest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var auditTests = []test{
	{"entries are listed newest first", testAuditList},
	{"a change of a key has its entry", testAuditKeys},
	{"a change of a key that fails has no entry", testAuditFailures},
}

func entry(action, target string, at time.Time) store.AuditEntry {
	return store.AuditEntry{At: at, Actor: "admin", From: "192.0.2.1", Action: action, Target: target, Detail: `seconds="60"`}
}

func audit(t *testing.T, s store.Audits, q store.AuditQuery) []store.AuditEntry {
	t.Helper()
	entries, err := s.ListAudit(t.Context(), q)
	if err != nil {
		t.Fatalf("ListAudit(%+v) = %v", q, err)
	}
	return entries
}

// checkAudit compares entries without their IDs.
func checkAudit(t *testing.T, got []store.AuditEntry, want ...store.AuditEntry) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty(), cmpopts.IgnoreFields(store.AuditEntry{}, "ID")); diff != "" {
		t.Errorf("the audit log (-want +got):\n%s", diff)
	}
}

func testAuditList(t *testing.T, db Opener) {
	s := db.open(t)
	if entries := audit(t, s, store.AuditQuery{Limit: 1}); entries == nil {
		t.Error("ListAudit of no entries is nil, want an empty slice")
	}
	var all []store.AuditEntry // newest first
	add := func(e store.AuditEntry) {
		t.Helper()
		if err := s.AddAudit(t.Context(), e); err != nil {
			t.Fatalf("AddAudit(%+v) = %v", e, err)
		}
	}
	for i := range 5 {
		e := entry(store.BanEnd, fmt.Sprint("owner:", i), start.Add(time.Duration(i/2)*time.Minute))
		add(e)
		e.At = kept(e.At)
		all = append([]store.AuditEntry{e}, all...)
	}
	// Of a clock that was wrong.
	early := entry(store.BanStart, "network:192.0.2.0/32", start.Add(-time.Hour))
	early.From, early.Detail = "", ""
	add(early)
	early.At = kept(early.At)
	all = append(all, early)

	checkAudit(t, audit(t, s, store.AuditQuery{Limit: store.MaxAudit}), all...)
	checkAudit(t, audit(t, s, store.AuditQuery{Limit: 2}), all[:2]...)
	checkAudit(t, audit(t, s, store.AuditQuery{Limit: 10, Since: kept(start).Add(time.Minute)}), all[:3]...)
	checkAudit(t, audit(t, s, store.AuditQuery{Limit: 10, Since: kept(start).Add(time.Minute + time.Microsecond)}), all[:1]...)
	checkAudit(t, audit(t, s, store.AuditQuery{Limit: 10, Since: start.Add(time.Hour)}))

	ids := map[int64]bool{}
	for _, e := range audit(t, s, store.AuditQuery{Limit: 10}) {
		ids[e.ID] = true
	}
	if len(ids) != len(all) || ids[0] {
		t.Errorf("the IDs of %d entries are %v, want one for each, from 1", len(all), ids)
	}
}

func testAuditKeys(t *testing.T, db Opener) {
	s := db.open(t)
	server := store.Actor{Name: "server"}
	first, err := s.CreateFirstKey(t.Context(), newKey(1), server)
	if err != nil {
		t.Fatalf("CreateFirstKey = %v", err)
	}
	k := newKey(2)
	k.Owner, k.Name, k.Plan, k.Quotas = "b\u202eb", strings.Repeat("\U000e0001", store.MaxText), "enterprise", []string{"5/minute", "7/day"}
	k.Created, k.Expires = start.Add(time.Second), start.Add(2*time.Hour)
	second := createKey(t, s, k)
	r := rotation(3, time.Hour)
	third, err := s.RotateKey(t.Context(), second.ID, r, ada)
	if err != nil {
		t.Fatalf("RotateKey = %v", err)
	}
	for range 2 { // the second time nothing changes
		if _, err := s.RevokeKey(t.Context(), first.ID, start.Add(time.Hour), ada); err != nil {
			t.Fatalf("RevokeKey = %v", err)
		}
	}
	name := `"` + strings.Repeat(`\U000e0001`, store.MaxText) + `"`
	checkAudit(t, audit(t, s, store.AuditQuery{Limit: 10}),
		store.AuditEntry{At: kept(start.Add(time.Hour)), Actor: ada.Name, From: ada.From, Action: "key.revoke", Target: first.ID,
			Detail: `owner="ada" name="laptop"`},
		store.AuditEntry{At: kept(r.At), Actor: ada.Name, From: ada.From, Action: "key.rotate", Target: second.ID,
			Detail: `owner="b\u202eb" name=` + name + ` new="` + third.ID + `" new_expires="never" old_expires="2026-05-04T11:31:15Z"`},
		store.AuditEntry{At: kept(k.Created), Actor: ada.Name, From: ada.From, Action: "key.create", Target: second.ID,
			Detail: `owner="b\u202eb" name=` + name + ` plan="enterprise" quotas="5/minute, 7/day" expires="2026-05-04T12:30:15Z"`},
		store.AuditEntry{At: kept(start), Actor: "server", Action: "key.create", Target: first.ID,
			Detail: `owner="ada" name="laptop" plan="free" expires="never"`},
	)
}

func testAuditFailures(t *testing.T, db Opener) {
	s := db.open(t)
	key := createKey(t, s, newKey(1))
	before := audit(t, s, store.AuditQuery{Limit: 10})
	_, createErr := s.CreateKey(t.Context(), newKey(1), ada)
	_, firstErr := s.CreateFirstKey(t.Context(), newKey(2), ada)
	_, rotateErr := s.RotateKey(t.Context(), key.ID, rotation(1, 0), ada)
	_, unknownErr := s.RotateKey(t.Context(), "key_x", rotation(3, 0), ada)
	_, revokeErr := s.RevokeKey(t.Context(), "key_x", start, ada)
	for name, err := range map[string]error{
		"CreateKey": createErr, "CreateFirstKey": firstErr, "RotateKey": rotateErr, "RotateKey of no key": unknownErr, "RevokeKey": revokeErr,
	} {
		if err == nil {
			t.Errorf("%s succeeded, want an error", name)
		}
	}
	checkAudit(t, audit(t, s, store.AuditQuery{Limit: 10}), before...)
}

var dailyTests = []test{
	{"the counts of a day add up", testDaySums},
	{"days are listed from the day of an instant", testDaySince},
	{"old days are removed", testDayPrune},
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

func testDaySums(t *testing.T, db Opener) {
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

func testDaySince(t *testing.T, db Opener) {
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

func testDayPrune(t *testing.T, db Opener) {
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

var deprecatedTests = []test{
	{"counts add up and the later time stays", testUseSums},
	{"recent requests are counted by day", testUseRecent},
	{"texts are ordered by their bytes", testUseOrder},
	{"counting at once loses nothing", testUseTogether},
}

func use(operation, owner string, count int64, last time.Time) store.DeprecatedUse {
	return store.DeprecatedUse{Operation: operation, Owner: owner, Count: count, Last: last}
}

func testUseSums(t *testing.T, db Opener) {
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
func testUseOrder(t *testing.T, db Opener) {
	s := db.open(t)
	texts := []string{" b", "-a", "A", "Z", "a", "a b", "aB", "ab", "b", "getPet", "é", "\U0001f408"}
	var want []store.DeprecatedUse
	for _, operation := range texts {
		for _, owner := range texts {
			want = append(want, recent(use(operation, owner, 1, kept(start)), 1))
		}
	}
	for _, u := range slices.Backward(want) {
		addUse(t, s, use(u.Operation, u.Owner, 1, start))
	}
	checkUse(t, s, start, want...)
}

func testUseRecent(t *testing.T, db Opener) {
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

func testUseTogether(t *testing.T, db Opener) {
	handles := []store.Store{db.open(t), db.open(t)}
	together(8, func(i int) {
		for range 4 {
			if err := handles[i%2].AddDeprecatedUse(t.Context(), use("getPet", "ada", 1, start)); err != nil {
				t.Errorf("AddDeprecatedUse = %v", err)
			}
			if err := handles[i%2].AddDailyUse(t.Context(), day("ada", today, 1, 2)); err != nil {
				t.Errorf("AddDailyUse = %v", err)
			}
		}
	})
	checkUse(t, handles[0], start, recent(use("getPet", "ada", 32, kept(start)), 32))
	checkDays(t, handles[0], "ada", today, day("ada", today, 32, 64))
}
