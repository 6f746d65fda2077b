package storetest

import (
	"encoding/binary"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// What package sqlkeys does with its table is tested with that package. These tests are about
// what a store makes of it.
var keyTests = []test{
	{"a key is read back as it was created", testKeyValues},
	{"a key that does not exist is not found", testKeyNotFound},
	{"of many calls at once, one creates the first key, and one replaces a key", testKeysTogether},
}

func digest(n uint64) (d store.Digest) {
	binary.BigEndian.PutUint64(d[:], n)
	return d
}

// ada is the actor that changes keys.
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

func testKeyValues(t *testing.T, db Opener) {
	s, other := db.open(t), db.open(t) // which sees each key immediately
	all := store.NewKey{
		Digest: digest(2), LastFour: "Z0_9", Name: "größe 🐈", Owner: strings.Repeat("é", store.MaxText), Plan: "enterprise",
		Quotas: []string{"5000/minute", `1000000/day,"x"`}, Limits: []string{"100/minute", "5/2s"}, Created: start, Expires: start.Add(time.Hour),
	}
	for _, k := range []store.NewKey{newKey(1), all} {
		made := createKey(t, s, k)
		want := store.Key{ID: made.ID, NewKey: k}
		want.Created = kept(k.Created)
		if !k.Expires.IsZero() {
			want.Expires = kept(k.Expires)
		}
		if !strings.HasPrefix(made.ID, "key_") {
			t.Errorf("key ID %q is not of apikey.NewKeyID's form", made.ID)
		}
		read, err := other.Key(t.Context(), made.ID)
		if err != nil {
			t.Errorf("Key(%q) = %v", made.ID, err)
		}
		for name, got := range map[string]store.Key{"CreateKey": made, "KeyByDigest": find(t, other, k.Digest), "Key": read} {
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("%s returned another key (-want +got):\n%s", name, diff)
			}
		}
	}
}

func testKeyNotFound(t *testing.T, db Opener) {
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

func rotation(n uint64, overlap time.Duration) store.Rotation {
	return store.Rotation{Digest: digest(n), LastFour: "wxyz", At: start.Add(time.Minute), Overlap: overlap}
}

func testKeysTogether(t *testing.T, db Opener) {
	handles := []store.Store{db.open(t), db.open(t)}
	const rounds, callers = 5, 16
	oneSucceeds(t, callers, store.ErrExists, func(i int) error {
		_, err := handles[i%2].CreateFirstKey(t.Context(), newKey(uint64(i+1)), ada)
		return err
	})
	for n := uint64(1); n < rounds; n++ { // in the first ones, connections are still made
		old := createKey(t, handles[0], newKey(100*n+1))
		oneSucceeds(t, callers, store.ErrInactive, func(i int) error {
			_, err := handles[i%2].RotateKey(t.Context(), old.ID, rotation(100*n+uint64(i)+2, 0), ada)
			return err
		})
	}
	keys, err := handles[0].ListKeys(t.Context())
	if err != nil || len(keys) != 2*rounds-1 {
		t.Errorf("%d keys are stored (%v), want %d", len(keys), err, 2*rounds-1)
	}
}
