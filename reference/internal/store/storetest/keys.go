package storetest

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var keyTests = []test{
	{"a key is read back as it was created", testKeyValues},
	{"a key that is not valid is refused and not stored", testKeyInvalid},
	{"a digest is stored once", testKeyDuplicate},
	{"a key that does not exist is not found", testKeyNotFound},
	{"keys are listed in order of their creation", testKeyList},
	{"of many first keys one is created", testFirstKeyTogether},
	{"a revoked key counts as a first one", testFirstKeyRevoked},
	{"a key is revoked once", testKeyRevoke},
	{"rotation shortens the old key's life", testKeyRotate},
	{"a key that is not active is not rotated", testKeyRotateInactive},
	{"a rotation that fails changes nothing", testKeyRotateFails},
	{"of many rotations of one key, one replaces it", testKeyRotateTogether},
	{"another handle sees a change at once", testKeyOtherHandle},
}

func digest(n uint64) (d store.Digest) {
	binary.BigEndian.PutUint64(d[:], n)
	return d
}

// ada is who changes keys.
var ada = store.Actor{Name: "cli:ada@host", From: "192.0.2.1"}

func newKey(n uint64) store.NewKey {
	return store.NewKey{
		Digest: digest(n), LastFour: "abcd", Name: "laptop", Owner: "ada", Plan: "free", Created: start,
	}
}

func createKey(t *testing.T, s store.Keys, k store.NewKey) store.Key {
	t.Helper()
	key, err := s.CreateKey(t.Context(), k, ada)
	if err != nil {
		t.Fatalf("CreateKey(%+v) = %v", k, err)
	}
	return key
}

func find(t *testing.T, s store.Keys, d store.Digest) store.Key {
	t.Helper()
	key, err := s.KeyByDigest(t.Context(), d)
	if err != nil {
		t.Fatalf("KeyByDigest(%x) = %v", d, err)
	}
	return key
}

func testKeyValues(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	all := store.NewKey{
		Digest: digest(2), LastFour: "Z0_9", Name: "größe 🐈", Owner: strings.Repeat("é", store.MaxText), Plan: "enterprise",
		Quotas: []string{"5000/minute", `1000000/day,"x"`}, Limits: []string{"100/minute", "5/2s"}, Created: start, Expires: start.Add(time.Hour),
	}
	none := newKey(3)
	none.Quotas, none.Limits = []string{}, []string{}
	for _, k := range []store.NewKey{newKey(1), all, none} {
		made := createKey(t, s, k)
		want := store.Key{ID: made.ID, NewKey: k}
		want.Created = kept(k.Created)
		if len(k.Quotas) == 0 {
			want.Quotas = nil
		}
		if len(k.Limits) == 0 {
			want.Limits = nil
		}
		if !k.Expires.IsZero() {
			want.Expires = kept(k.Expires)
		}
		if !strings.HasPrefix(made.ID, "key_") {
			t.Errorf("key ID %q is not of apikey.NewKeyID's form", made.ID)
		}
		if diff := cmp.Diff(want, made); diff != "" {
			t.Errorf("CreateKey returned another key (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, find(t, s, k.Digest)); diff != "" {
			t.Errorf("KeyByDigest returned another key (-want +got):\n%s", diff)
		}
		if got, err := s.Key(t.Context(), made.ID); err != nil {
			t.Errorf("Key(%q) = %v", made.ID, err)
		} else if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("Key returned another key (-want +got):\n%s", diff)
		}
	}
}

func testKeyInvalid(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	for name, breakIt := range map[string]func(*store.NewKey){
		"no digest":                func(k *store.NewKey) { k.Digest = store.Digest{} },
		"no owner":                 func(k *store.NewKey) { k.Owner = "" },
		"no plan":                  func(k *store.NewKey) { k.Plan = "" },
		"no creation":              func(k *store.NewKey) { k.Created = time.Time{} },
		"control in name":          func(k *store.NewKey) { k.Name = "a\tb" },
		"three characters":         func(k *store.NewKey) { k.LastFour = "abc" },
		"four bytes of two":        func(k *store.NewKey) { k.LastFour = "éé" },
		"expires at once":          func(k *store.NewKey) { k.Expires = k.Created },
		"empty quota":              func(k *store.NewKey) { k.Quotas = []string{""} },
		"a limit that is no quota": func(k *store.NewKey) { k.Limits = []string{"100"} },
		"two limits of one window": func(k *store.NewKey) { k.Limits = []string{"1/minute", "2/60s"} },
		"a long limit":             func(k *store.NewKey) { k.Limits = []string{strings.Repeat("0", 64) + "1/s"} },
		"five limits":              func(k *store.NewKey) { k.Limits = []string{"1/1s", "2/2s", "3/3s", "4/4s", "5/5s"} },
		"many quotas":              func(k *store.NewKey) { k.Quotas = strings.Split(strings.Repeat("1/s ", 17), " ") },
	} {
		k := newKey(1)
		breakIt(&k)
		if key, err := s.CreateKey(t.Context(), k, ada); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: CreateKey = %+v, %v, want an error that wraps ErrInvalid", name, key, err)
		}
		if key, err := s.CreateFirstKey(t.Context(), k, ada); !errors.Is(err, store.ErrInvalid) {
			t.Errorf("%s: CreateFirstKey = %+v, %v, want an error that wraps ErrInvalid", name, key, err)
		}
	}
	checkKeys(t, s)
}

func testKeyDuplicate(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	want := createKey(t, s, newKey(1))
	again := newKey(1)
	again.Owner = "eve"
	if key, err := s.CreateKey(t.Context(), again, ada); !errors.Is(err, store.ErrExists) {
		t.Errorf("CreateKey with a stored digest = %+v, %v, want an error that wraps ErrExists", key, err)
	}
	checkKeys(t, s, want)
}

func testKeyNotFound(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	want := createKey(t, s, newKey(1))
	if key, err := s.KeyByDigest(t.Context(), digest(2)); !errors.Is(err, store.ErrNotFound) {
		t.Errorf("KeyByDigest of an unknown digest = %+v, %v, want an error that wraps ErrNotFound", key, err)
	}
	for _, id := range []string{"", "key_", want.ID + "x", strings.ToUpper(want.ID), "%", want.ID + "\x00", "\xff"} {
		if key, err := s.Key(t.Context(), id); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("Key(%q) = %+v, %v, want an error that wraps ErrNotFound", id, key, err)
		}
		if key, err := s.RevokeKey(t.Context(), id, start, ada); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("RevokeKey(%q) = %+v, %v, want an error that wraps ErrNotFound", id, key, err)
		}
		if key, err := s.RotateKey(t.Context(), id, rotation(2, 0), ada); !errors.Is(err, store.ErrNotFound) {
			t.Errorf("RotateKey(%q) = %+v, %v, want an error that wraps ErrNotFound", id, key, err)
		}
	}
	checkKeys(t, s, want)
}

func testKeyList(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	keys, err := s.ListKeys(t.Context())
	if err != nil || keys == nil {
		t.Errorf("ListKeys of no keys = %v, %v, want a slice that is not nil", keys, err)
	}
	late, early := newKey(1), newKey(2)
	late.Created = start.Add(time.Second)
	second, first := createKey(t, s, late), createKey(t, s, early)
	if first, err = s.RevokeKey(t.Context(), first.ID, start, ada); err != nil {
		t.Fatalf("RevokeKey = %v", err)
	}
	want := []store.Key{first, second}
	for n := range uint64(8) {
		k := newKey(10 + n)
		k.Created = start.Add(time.Minute)
		want = append(want, createKey(t, s, k))
	}
	slices.SortFunc(want[2:], func(a, b store.Key) int { return strings.Compare(a.ID, b.ID) })
	checkKeys(t, s, want...)
}

// checkKeys checks that the store holds these keys and no others.
func checkKeys(t *testing.T, s store.Keys, want ...store.Key) {
	t.Helper()
	got, err := s.ListKeys(t.Context())
	if err != nil {
		t.Fatalf("ListKeys = %v", err)
	}
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("ListKeys returned other keys (-want +got):\n%s", diff)
	}
}

func testFirstKeyTogether(t *testing.T, db Opener[store.Store]) {
	handles := []store.Store{db.open(t), db.open(t)}
	var created atomic.Int32
	together(8, func(i int) {
		_, err := handles[i%2].CreateFirstKey(t.Context(), newKey(uint64(i+1)), ada)
		switch {
		case err == nil:
			created.Add(1)
		case !errors.Is(err, store.ErrExists):
			t.Errorf("CreateFirstKey = %v, want nil or an error that wraps ErrExists", err)
		}
	})
	keys, err := handles[0].ListKeys(t.Context())
	if err != nil {
		t.Fatalf("ListKeys = %v", err)
	}
	if created.Load() != 1 || len(keys) != 1 {
		t.Errorf("CreateFirstKey succeeded %d times and stored %d keys, want one", created.Load(), len(keys))
	}
}

func testFirstKeyRevoked(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	key, err := s.CreateFirstKey(t.Context(), newKey(1), ada)
	if err != nil {
		t.Fatalf("CreateFirstKey = %v", err)
	}
	if key, err = s.RevokeKey(t.Context(), key.ID, start, ada); err != nil {
		t.Fatalf("RevokeKey = %v", err)
	}
	if _, err := s.CreateFirstKey(t.Context(), newKey(2), ada); !errors.Is(err, store.ErrExists) {
		t.Errorf("CreateFirstKey beside a revoked key = %v, want an error that wraps ErrExists", err)
	}
	checkKeys(t, s, key)
}
