package storetest

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var auditTests = []test{
	{"entries are listed newest first", testAuditList},
	{"an entry that is not valid is refused and not stored", testAuditInvalid},
	{"a change of a key has its entry", testAuditKeys},
	{"a change of a key that fails has no entry", testAuditFailures},
	{"a change by nobody is refused", testAuditNobody},
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

func testAuditList(t *testing.T, db Opener[store.Store]) {
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
	for _, limit := range []int{-1, 0, store.MaxAudit + 1} {
		if _, err := s.ListAudit(t.Context(), store.AuditQuery{Limit: limit}); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("ListAudit with limit %d = %v, want an error that wraps ErrInvalid", limit, err)
		}
	}
}

func testAuditInvalid(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for name, breakIt := range map[string]func(*store.AuditEntry){
		"no time":            func(e *store.AuditEntry) { e.At = time.Time{} },
		"no actor":           func(e *store.AuditEntry) { e.Actor = "" },
		"no action":          func(e *store.AuditEntry) { e.Action = "" },
		"no target":          func(e *store.AuditEntry) { e.Target = "" },
		"control in actor":   func(e *store.AuditEntry) { e.Actor = "a\nb" },
		"control in address": func(e *store.AuditEntry) { e.From = "a\x1bb" },
		"control in detail":  func(e *store.AuditEntry) { e.Detail = "a\nb" },
		"not UTF-8":          func(e *store.AuditEntry) { e.Target = "\xff" },
		"long detail":        func(e *store.AuditEntry) { e.Detail = strings.Repeat("x", store.MaxDetail+1) },
	} {
		e := entry(store.BanEnd, "owner:ada", start)
		breakIt(&e)
		if err := s.AddAudit(t.Context(), e); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: AddAudit = %v, want an error that wraps ErrInvalid", name, err)
		}
	}
	checkAudit(t, audit(t, s, store.AuditQuery{Limit: 10}))
}

func testAuditKeys(t *testing.T, db Opener[store.Store]) {
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

func testAuditFailures(t *testing.T, db Opener[store.Store]) {
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

func testAuditNobody(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	key := createKey(t, s, newKey(1))
	for _, by := range []store.Actor{{}, {From: "192.0.2.1"}, {Name: "a\nb"}, {Name: "a", From: "\x00"}} {
		_, createErr := s.CreateKey(t.Context(), newKey(2), by)
		_, firstErr := s.CreateFirstKey(t.Context(), newKey(2), by)
		_, rotateErr := s.RotateKey(t.Context(), key.ID, rotation(2, 0), by)
		_, revokeErr := s.RevokeKey(t.Context(), key.ID, start, by)
		for name, err := range map[string]error{
			"CreateKey": createErr, "CreateFirstKey": firstErr, "RotateKey": rotateErr, "RevokeKey": revokeErr,
		} {
			if !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%s by %+v = %v, want an error that wraps ErrInvalid", name, by, err)
			}
		}
	}
	checkKeys(t, s, key)
}
