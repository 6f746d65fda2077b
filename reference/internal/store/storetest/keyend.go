package storetest

import (
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

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
	if _, err := s.RevokeKey(t.Context(), other.ID, time.Time{}, ada); !errors.Is(err, store.ErrInvalid) {
		t.Errorf("RevokeKey at no time = %v, want an error that wraps ErrInvalid", err)
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
		"negative overlap":      {rotation(3, -1), store.ErrInvalid},
		"no digest":             {rotation(0, 0), store.ErrInvalid},
		"no time":               {store.Rotation{Digest: digest(3), LastFour: "wxyz"}, store.ErrInvalid},
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
		var rotated atomic.Int32
		together(callers, func(i int) {
			_, err := handles[i%2].RotateKey(t.Context(), old.ID, rotation(100*n+uint64(i)+2, 0), ada)
			switch {
			case err == nil:
				rotated.Add(1)
			case !errors.Is(err, store.ErrInactive):
				t.Errorf("RotateKey = %v, want nil or an error that wraps ErrInactive", err)
			}
		})
		if rotated.Load() != 1 {
			t.Errorf("%d rotations of one key succeeded, want 1", rotated.Load())
		}
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
