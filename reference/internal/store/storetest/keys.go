package storetest

import (
	"encoding/binary"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

var keyTests = []test{
	{"a key is read back as it was created", testKeyValues},
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
	oneSucceeds(t, 8, store.ErrExists, func(i int) error {
		_, err := handles[i%2].CreateFirstKey(t.Context(), newKey(uint64(i+1)), ada)
		return err
	})
	keys, err := handles[0].ListKeys(t.Context())
	if err != nil || len(keys) != 1 {
		t.Errorf("%d keys are stored (%v), want one", len(keys), err)
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

func testKeyRevoke(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	want, other := createKey(t, s, newKey(1)), createKey(t, s, newKey(2))
	want.Revoked = kept(start.Add(time.Minute))
	for _, at := range []time.Time{start.Add(time.Minute), start.Add(time.Hour), start} {
		got, err := s.RevokeKey(t.Context(), want.ID, at, ada)
		if err != nil {
			t.Fatalf("RevokeKey = %v", err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("RevokeKey returned another key than the one first revoked (-want +got):\n%s", diff)
		}
		if diff := cmp.Diff(want, find(t, s, want.Digest)); diff != "" {
			t.Errorf("KeyByDigest after RevokeKey (-want +got):\n%s", diff)
		}
	}
	if diff := cmp.Diff(other, find(t, s, other.Digest)); diff != "" {
		t.Errorf("RevokeKey changed another key (-want +got):\n%s", diff)
	}
}

func rotation(n uint64, overlap time.Duration) store.Rotation {
	return store.Rotation{Digest: digest(n), LastFour: "wxyz", At: start.Add(time.Minute), Overlap: overlap}
}

func testKeyRotate(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	at := rotation(1, 0).At
	for i, tt := range []struct {
		name    string
		expires time.Time // of the old key
		overlap time.Duration
		want    time.Time // expiry of the old key
	}{
		{"a key without end, no overlap", time.Time{}, 0, at},
		{"a key without end", time.Time{}, time.Hour, at.Add(time.Hour)},
		{"a key that ends later", at.Add(2 * time.Hour), time.Hour, at.Add(time.Hour)},
		{"a key that ends with the overlap", at.Add(time.Hour), time.Hour, at.Add(time.Hour)},
		{"a key that ends sooner", at.Add(time.Minute), time.Hour, at.Add(time.Minute)},
	} {
		oldDigest, newDigest := uint64(10+2*i), uint64(11+2*i)
		k := newKey(oldDigest)
		k.Expires, k.Quotas, k.Limits = tt.expires, []string{"5/minute"}, []string{"3/minute"}
		old := createKey(t, s, k)
		r := rotation(newDigest, tt.overlap)
		r.Expires = at.Add(24 * time.Hour)

		fresh, err := s.RotateKey(t.Context(), old.ID, r, ada)
		if err != nil {
			t.Fatalf("%s: RotateKey = %v", tt.name, err)
		}
		want := old
		want.Expires = kept(tt.want)
		if diff := cmp.Diff(want, find(t, s, old.Digest)); diff != "" {
			t.Errorf("%s: the old key (-want +got):\n%s", tt.name, diff)
		}
		want = store.Key{ID: fresh.ID, NewKey: old.NewKey}
		want.Digest, want.LastFour, want.Created, want.Expires = r.Digest, r.LastFour, kept(r.At), kept(r.Expires)
		if diff := cmp.Diff(want, fresh); diff != "" {
			t.Errorf("%s: RotateKey returned another key (-want +got):\n%s", tt.name, diff)
		}
		if diff := cmp.Diff(want, find(t, s, r.Digest)); diff != "" {
			t.Errorf("%s: the new key (-want +got):\n%s", tt.name, diff)
		}
		if fresh.ID == old.ID {
			t.Errorf("%s: the new key has the old one's ID", tt.name)
		}
	}
}

func testKeyRotateInactive(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	k := newKey(1)
	k.Expires = rotation(0, 0).At
	expired, revoked := createKey(t, s, k), createKey(t, s, newKey(2))
	revoked, err := s.RevokeKey(t.Context(), revoked.ID, start, ada)
	if err != nil {
		t.Fatalf("RevokeKey = %v", err)
	}
	for _, key := range []store.Key{expired, revoked} {
		if fresh, err := s.RotateKey(t.Context(), key.ID, rotation(3, time.Hour), ada); !errors.Is(err, store.ErrInactive) {
			t.Errorf("RotateKey of %+v = %+v, %v, want an error that wraps ErrInactive", key, fresh, err)
		}
		if diff := cmp.Diff(key, find(t, s, key.Digest)); diff != "" {
			t.Errorf("a refused rotation changed the key (-want +got):\n%s", diff)
		}
	}
}

func testKeyRotateFails(t *testing.T, db Opener[store.Store]) {
	s := db.open(t)
	old, other := createKey(t, s, newKey(1)), newKey(2)
	other.Created = start.Add(time.Second)
	taken := createKey(t, s, other)
	for name, tt := range map[string]struct {
		rotation store.Rotation
		want     error
	}{
		"digest of another key": {rotation(2, 0), store.ErrExists},
		"its own digest":        {rotation(1, 0), store.ErrExists},
	} {
		if fresh, err := s.RotateKey(t.Context(), old.ID, tt.rotation, ada); !errors.Is(err, tt.want) {
			t.Errorf("%s: RotateKey = %+v, %v, want an error that wraps %v", name, fresh, err, tt.want)
		}
	}
	checkKeys(t, s, old, taken)
}

func testKeyRotateTogether(t *testing.T, db Opener[store.Store]) {
	handles := []store.Store{db.open(t), db.open(t)}
	const rounds, callers = 5, 16
	for n := range uint64(rounds) { // in the first ones, connections are still made
		old := createKey(t, handles[0], newKey(100*n+1))
		oneSucceeds(t, callers, store.ErrInactive, func(i int) error {
			_, err := handles[i%2].RotateKey(t.Context(), old.ID, rotation(100*n+uint64(i)+2, 0), ada)
			return err
		})
	}
	keys, err := handles[0].ListKeys(t.Context())
	if err != nil || len(keys) != 2*rounds {
		t.Errorf("%d keys are stored (%v), want %d", len(keys), err, 2*rounds)
	}
}

func testKeyOtherHandle(t *testing.T, db Opener[store.Store]) {
	server, command := db.open(t), db.open(t)
	key := createKey(t, command, newKey(1))
	if got := find(t, server, key.Digest); !got.Active(start) {
		t.Errorf("a new key is not active: %+v", got)
	}
	if _, err := command.RotateKey(t.Context(), key.ID, rotation(2, time.Hour), ada); err != nil {
		t.Fatalf("RotateKey = %v", err)
	}
	if got := find(t, server, key.Digest); got.Expires.IsZero() {
		t.Errorf("the other handle does not see the rotation: %+v", got)
	}
	if _, err := command.RevokeKey(t.Context(), key.ID, start, ada); err != nil {
		t.Fatalf("RevokeKey = %v", err)
	}
	if got := find(t, server, key.Digest); got.Active(start) {
		t.Errorf("the other handle does not see the revocation: %+v", got)
	}
}
