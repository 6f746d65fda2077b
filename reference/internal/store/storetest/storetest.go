// Package storetest checks that an implementation of the interfaces in package
// store keeps their promises.
//
//	func TestConformance(t *testing.T) {
//		storetest.Run(t, func(t *testing.T) storetest.Opener {
//			path := filepath.Join(t.TempDir(), "pets.db")
//			return func() (store.Store, error) { return Open(path) }
//		})
//	}
//
// It tests what a caller can see within one process. How a database survives a
// crash, or works with other processes, each implementation tests by itself.
package storetest

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// An Opener opens a handle on one and the same database, each time a new one.
type Opener func() (store.Store, error)

// open opens a handle that is closed when the test ends.
func (o Opener) open(t *testing.T) store.Store {
	t.Helper()
	s, err := o()
	if err != nil {
		t.Fatalf("open: %v", err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("Close at the end of the test: %v", err)
		}
	})
	return s
}

// Run tests a [store.Store]. For each of its subtests it calls newDatabase,
// which prepares an empty database. Several handles are open at once, and subtests run in
// parallel.
func Run(t *testing.T, newDatabase func(t *testing.T) Opener) {
	for _, group := range []struct {
		name  string
		tests []test
	}{
		{"Pets", petTests},
		{"Pets once", onceTests},
		{"Keys", keyTests},
		{"Audits", auditTests},
		{"DailyUses", dailyTests},
		{"DeprecatedUses", deprecatedTests},
		{"Store", storeTests},
	} {
		for _, tt := range group.tests {
			t.Run(group.name+"/"+tt.name, func(t *testing.T) {
				t.Parallel() // they mostly wait for the disk, or for a server
				tt.run(t, newDatabase(t))
			})
		}
	}
}

type test struct {
	name string
	run  func(t *testing.T, db Opener)
}

var storeTests = []test{
	{"Ping succeeds on an open store", func(t *testing.T, db Opener) {
		if err := db.open(t).Ping(t.Context()); err != nil {
			t.Errorf("Ping = %v, want nil", err)
		}
	}},
	{"after Close every call is unavailable", testClosed},
	{"a second Close does nothing", func(t *testing.T, db Opener) {
		s := db.open(t)
		for range 2 {
			if err := s.Close(); err != nil {
				t.Errorf("Close = %v, want nil", err)
			}
		}
	}},
	{"a context that has ended ends every call", testCanceled},
	{"what is not valid is refused and not stored", testInvalid},
}

// calls makes one call of each method that takes a context.
func calls(ctx context.Context, s store.Store) map[string]error {
	errs := map[string]error{}
	_, errs["CreatePet"] = s.CreatePet(ctx, store.NewPet{Name: "Rex"})
	_, _, errs["CreatePetOnce"] = s.CreatePetOnce(ctx, store.NewPet{Name: "Rex"}, onceKey("o", "k", 1, start))
	_, errs["Pet"] = s.Pet(ctx, 1)
	_, _, errs["ListPets"] = s.ListPets(ctx, store.ListQuery{Limit: 1})
	_, errs["CreateKey"] = s.CreateKey(ctx, newKey(1), ada)
	_, errs["CreateFirstKey"] = s.CreateFirstKey(ctx, newKey(2), ada)
	_, errs["KeyByDigest"] = s.KeyByDigest(ctx, digest(1))
	_, errs["Key"] = s.Key(ctx, "key_1")
	_, errs["ListKeys"] = s.ListKeys(ctx)
	_, errs["RevokeKey"] = s.RevokeKey(ctx, "key_1", start, ada)
	_, errs["RotateKey"] = s.RotateKey(ctx, "key_1", store.Rotation{Digest: digest(3), LastFour: "wxyz", At: start}, ada)
	errs["AddDeprecatedUse"] = s.AddDeprecatedUse(ctx, store.DeprecatedUse{Operation: "getPet", Owner: "o", Count: 1, Last: start})
	_, errs["ListDeprecatedUse"] = s.ListDeprecatedUse(ctx, start)
	errs["AddDailyUse"] = s.AddDailyUse(ctx, store.DailyUse{Owner: "o", Day: today, Allowed: 1})
	_, errs["ListDailyUse"] = s.ListDailyUse(ctx, "o", start)
	errs["PruneDailyUse"] = s.PruneDailyUse(ctx, start)
	errs["AddAudit"] = s.AddAudit(ctx, entry("ban.end", "owner:o", start))
	_, errs["ListAudit"] = s.ListAudit(ctx, store.AuditQuery{Limit: 1})
	errs["Ping"] = s.Ping(ctx)
	return errs
}

func testClosed(t *testing.T, db Opener) {
	s := db.open(t)
	if err := s.Close(); err != nil {
		t.Fatalf("Close = %v", err)
	}
	for name, err := range calls(t.Context(), s) {
		if !errors.Is(err, store.ErrUnavailable) {
			t.Errorf("%s after Close = %v, want an error that wraps ErrUnavailable", name, err)
		}
	}
}

func testCanceled(t *testing.T, db Opener) {
	s := db.open(t)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, err := range calls(ctx, s) {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("%s with a canceled context = %v, want an error that wraps context.Canceled", name, err)
		}
	}
	checkEmpty(t, s)
}

// testInvalid has one value for each argument that breaks a rule. The rules are those of the
// Validate methods and of CheckKey.
func testInvalid(t *testing.T, db Opener) {
	s := db.open(t)
	nobody := store.Actor{From: "192.0.2.1"}
	named := newKey(1)
	named.Name = "a\tb"
	ctx, errs := t.Context(), map[string]error{}
	_, errs["a pet"] = s.CreatePet(ctx, store.NewPet{})
	_, _, errs["a pet with a key"] = s.CreatePetOnce(ctx, store.NewPet{}, onceKey("ada", "k", 1, start))
	_, _, errs["an idempotency key"] = s.CreatePetOnce(ctx, rex, store.IdempotencyKey{})
	_, _, errs["a list"] = s.ListPets(ctx, store.ListQuery{})
	_, errs["a key"] = s.CreateKey(ctx, store.NewKey{}, ada)
	_, errs["a name of a key"] = s.CreateKey(ctx, named, ada)
	_, errs["a key by nobody"] = s.CreateKey(ctx, newKey(1), nobody)
	_, errs["a first key"] = s.CreateFirstKey(ctx, store.NewKey{}, ada)
	_, errs["a first key by nobody"] = s.CreateFirstKey(ctx, newKey(1), nobody)
	_, errs["a revocation"] = s.RevokeKey(ctx, "key_1", time.Time{}, ada)
	_, errs["a revocation by nobody"] = s.RevokeKey(ctx, "key_1", start, nobody)
	_, errs["a rotation"] = s.RotateKey(ctx, "key_1", store.Rotation{}, ada)
	_, errs["an overlap"] = s.RotateKey(ctx, "key_1", rotation(1, -1), ada)
	_, errs["a rotation by nobody"] = s.RotateKey(ctx, "key_1", rotation(1, 0), nobody)
	errs["an audit entry"] = s.AddAudit(ctx, store.AuditEntry{})
	_, errs["an audit query"] = s.ListAudit(ctx, store.AuditQuery{})
	errs["one of two days"] = s.AddDailyUse(ctx, day("bob", today, 1, 0), day("ada", today.Add(time.Second), 1, 0))
	errs["one of two uses"] = s.AddDeprecatedUse(ctx, use("getPet", "bob", 1, start), use("getPet", "ada", 0, start))
	for name, err := range errs {
		if !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s that is not valid = %v, want an error that wraps ErrInvalid", name, err)
		}
	}
	checkEmpty(t, s)
}

// checkEmpty checks that nothing is stored.
func checkEmpty(t *testing.T, s store.Store) {
	t.Helper()
	checkList(t, s, store.ListQuery{Limit: 10}, []int64{}, false)
	checkKeys(t, s)
	checkAudit(t, audit(t, s, store.AuditQuery{Limit: 10}))
	for _, owner := range []string{"o", "ada", "bob"} {
		checkDays(t, s, owner, time.Time{})
	}
	checkUse(t, s, time.Time{})
}

// start is the instant at which the tests take place. It is not in UTC and finer
// than a microsecond, so that both show.
var start = time.Date(2026, time.May, 4, 12, 30, 15, 123_456_789, time.FixedZone("CEST", 2*60*60))

// today is the UTC day of start.
var today = time.Date(2026, time.May, 4, 0, 0, 0, 0, time.UTC)

// kept is t as a store gives it back.
func kept(t time.Time) time.Time { return t.Truncate(time.Microsecond).UTC() }

// together runs do n times at once.
func together(n int, do func(i int)) {
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() { do(i) })
	}
	wg.Wait()
}

// oneSucceeds makes n calls at once, of which one must succeed. The others must fail with an
// error that wraps the given one.
func oneSucceeds(t *testing.T, n int, otherwise error, call func(i int) error) {
	t.Helper()
	var succeeded atomic.Int32
	together(n, func(i int) {
		switch err := call(i); {
		case err == nil:
			succeeded.Add(1)
		case !errors.Is(err, otherwise):
			t.Errorf("one of %d calls = %v, want nil or an error that wraps %q", n, err, otherwise)
		}
	})
	if succeeded.Load() != 1 {
		t.Errorf("%d of %d calls succeeded, want 1", succeeded.Load(), n)
	}
}
