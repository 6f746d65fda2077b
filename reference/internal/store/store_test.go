package store_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// JSON has no other years, and PostgreSQL would store some of them as another time.
func TestTimesAreInTheYears1To9999(t *testing.T) {
	first := time.Date(1, time.January, 2, 0, 0, 0, 0, time.UTC)
	last := time.Date(9999, time.December, 31, 0, 0, 0, 0, time.UTC)
	for at, want := range map[time.Time]bool{
		first: true, noon: true, last: true,
		first.AddDate(-1, 0, 0):                                 false,
		last.AddDate(0, 0, 1):                                   false,
		time.UnixMicro(-1 << 63).UTC():                          false,
		time.UnixMicro(1<<63 - 1).UTC():                         false,
		last.In(time.FixedZone("", -3600)):                      true,
		last.Add(24*time.Hour - 1).In(time.FixedZone("", 3600)): true, // the year 10000 there
	} {
		key := store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: at}
		expiring := key
		expiring.Created, expiring.Expires = first.Add(-1), at
		if !want && at.Before(first) {
			expiring.Created = at.Add(-1)
		}
		for name, err := range map[string]error{
			"a key created then":         store.CheckKey(key),
			"a key that expires then":    store.CheckKey(expiring),
			"an audit entry of then":     store.AuditEntry{At: at, Actor: "a", Action: "b", Target: "c"}.Validate(),
			"daily use of then":          store.DailyUse{Owner: "o", Day: store.Day(at)}.Validate(),
			"deprecated use of then":     store.DeprecatedUse{Operation: "getPet", Owner: "o", Count: 1, Last: at}.Validate(),
			"an idempotency key of then": store.IdempotencyKey{Owner: "o", Key: "k", At: at}.Validate(),
		} {
			if got := err == nil; got != want || !got && !errors.Is(err, store.ErrInvalid) {
				t.Errorf("%v: %s is valid: %v (%v), want %v", at, name, got, err, want)
			}
		}
	}
}

// Each of the values breaks one rule of its type.
func TestValidate(t *testing.T) {
	long := strings.Repeat("é", store.MaxText)
	pet := func(name string, status store.Status) error {
		return store.NewPet{Name: name, Status: status}.Validate()
	}
	key := func(change func(*store.NewKey)) error {
		k := store.NewKey{Digest: store.Digest{1}, LastFour: "abcd", Name: "n", Owner: "o", Plan: "p", Created: noon}
		change(&k)
		return store.CheckKey(k)
	}
	entry := func(change func(*store.AuditEntry)) error {
		e := store.AuditEntry{At: noon, Actor: "a", From: "192.0.2.1", Action: "b", Target: "c", Detail: "d"}
		change(&e)
		return e.Validate()
	}
	once := func(owner, key string, at time.Time) error {
		return store.IdempotencyKey{Owner: owner, Key: key, At: at}.Validate()
	}
	day := func(owner string, day time.Time, allowed, denied int64) error {
		return store.DailyUse{Owner: owner, Day: day, Allowed: allowed, Denied: denied}.Validate()
	}
	use := func(operation, owner string, count int64, last time.Time) error {
		return store.DeprecatedUse{Operation: operation, Owner: owner, Count: count, Last: last}.Validate()
	}
	for name, err := range map[string]error{
		"pet": pet(long, ""), "sold pet": pet("a", store.Sold), "key": key(func(*store.NewKey) {}),
		"entry": entry(func(*store.AuditEntry) {}), "once": once("o", "k", noon),
		"day": day("o", store.Day(noon), 0, 1), "use": use("getPet", "o", 1, noon),
		"list": store.ListQuery{Limit: store.MaxList}.Validate(), "query": store.AuditQuery{Limit: store.MaxAudit}.Validate(),
	} {
		if err != nil {
			t.Errorf("a valid %s: %v", name, err)
		}
	}
	for name, err := range map[string]error{
		"no name": pet("", ""), "long name": pet(long+"a", ""), "NUL": pet("Re\x00x", ""), "line feed": pet("Rex\n", ""),
		"DEL": pet("Rex\x7f", ""), "C1 control": pet("Rex\u0085", ""), "not UTF-8": pet("Rex\xff", ""),
		"unknown status": pet("Rex", "eaten"), "case of status": pet("Rex", "Sold"), "space after status": pet("Rex", "sold "),

		"no limit":               store.ListQuery{}.Validate(),
		"large limit":            store.ListQuery{Limit: store.MaxList + 1}.Validate(),
		"unknown status to list": store.ListQuery{Limit: 1, Status: "eaten"}.Validate(),
		"negative after":         store.ListQuery{Limit: 1, After: -1}.Validate(),
		"no audit limit":         store.AuditQuery{}.Validate(),
		"large audit limit":      store.AuditQuery{Limit: store.MaxAudit + 1}.Validate(),
		"no key owner":           key(func(k *store.NewKey) { k.Owner = "" }),
		"no plan":                key(func(k *store.NewKey) { k.Plan = "" }),
		"no creation":            key(func(k *store.NewKey) { k.Created = time.Time{} }),
		"control in key name":    key(func(k *store.NewKey) { k.Name = "a\tb" }),
		"empty quota":            key(func(k *store.NewKey) { k.Quotas = []string{""} }),
		"a long limit":           key(func(k *store.NewKey) { k.Limits = []string{strings.Repeat("0", 64) + "1/s"} }),
		"many quotas":            key(func(k *store.NewKey) { k.Quotas = strings.Split(strings.Repeat("1/s ", 17), " ") }),
		"a long quota":           key(func(k *store.NewKey) { k.Quotas = []string{strings.Repeat("0", 64) + "1/s"} }),

		"entry without time":     entry(func(e *store.AuditEntry) { e.At = time.Time{} }),
		"entry without actor":    entry(func(e *store.AuditEntry) { e.Actor = "" }),
		"entry without action":   entry(func(e *store.AuditEntry) { e.Action = "" }),
		"entry without target":   entry(func(e *store.AuditEntry) { e.Target = "" }),
		"control in actor":       entry(func(e *store.AuditEntry) { e.Actor = "a\nb" }),
		"control in address":     entry(func(e *store.AuditEntry) { e.From = "a\x1bb" }),
		"control in detail":      entry(func(e *store.AuditEntry) { e.Detail = "a\nb" }),
		"target not UTF-8":       entry(func(e *store.AuditEntry) { e.Target = "\xff" }),
		"long detail":            entry(func(e *store.AuditEntry) { e.Detail = strings.Repeat("x", store.MaxDetail+1) }),
		"once without owner":     once("", "k", noon),
		"once without key":       once("o", "", noon),
		"control in key":         once("o", "a\nb", noon),
		"once without time":      once("o", "k", time.Time{}),
		"day without owner":      day("", store.Day(noon), 1, 0),
		"no day":                 day("o", time.Time{}, 1, 0),
		"not the start of a day": day("o", noon, 1, 0),
		"00:00 elsewhere":        day("o", time.Date(2026, time.May, 4, 0, 0, 0, 0, time.FixedZone("", 7200)), 1, 0),
		"negative count":         day("o", store.Day(noon), -1, 2),
		"negative denials":       day("o", store.Day(noon), 1, -1),
		"no operation":           use("", "o", 1, noon),
		"use without owner":      use("getPet", "", 1, noon),
		"no count":               use("getPet", "o", 0, noon),
		"use at no time":         use("getPet", "o", 1, time.Time{}),
	} {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: Validate = %v, want an error that wraps ErrInvalid", name, err)
		}
	}
}
