package apikey_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

func TestAnswersAreRememberedForOneTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ttl, opts := range map[time.Duration]apikey.Options{
			time.Second:            {},
			100 * time.Millisecond: {TTL: 100 * time.Millisecond},
		} {
			store := newStore()
			v := newVerifier(t, store, opts)
			known, unknown := store.issue(t), newFormat(t, "pet_live_").Generate().Reveal()
			revoked := store.issue(t, func(r *record) { r.Revoked = time.Now() })
			all := func() {
				verify(t, v, known, nil)
				verify(t, v, unknown, apikey.ErrUnknown)
				verify(t, v, revoked, apikey.ErrRevoked)
			}
			all()
			calls(t, store, 3)
			time.Sleep(ttl - time.Nanosecond)
			all()
			calls(t, store, 3)
			time.Sleep(time.Nanosecond)
			all()
			calls(t, store, 6)
		}
	})
}

// An expiry that passes while the store is being asked counts.
func TestExpiryDuringLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.before = func(context.Context, apikey.Digest) { time.Sleep(100 * time.Millisecond) }
		v := newVerifier(t, store, apikey.Options{})
		key := store.issue(t, func(r *record) { r.Expires = time.Now().Add(50 * time.Millisecond) })
		verify(t, v, key, apikey.ErrExpired)
	})
}

// Capacity bounds memory, and a flood of well-formed keys that were never issued does
// not displace the valid ones.
func TestFloodOfUnknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{})
		v.Shrink(640, 32)
		format := newFormat(t, "pet_live_")
		var good []string
		for range 100 {
			good = append(good, store.issue(t))
			verify(t, v, good[len(good)-1], nil)
		}
		for range 5000 {
			verify(t, v, format.Generate().Reveal(), apikey.ErrUnknown)
		}
		if _, invalid := v.Remembered(); invalid > 640 || invalid < 320-32 {
			t.Errorf("%d keys that are not valid are remembered, want some between half of 640 and 640", invalid)
		}
		before := store.count()
		for _, key := range good {
			verify(t, v, key, nil)
		}
		calls(t, store, before)
	})
}

func TestCapacityOfValidKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{})
		v.Shrink(640, 32)
		var last []string
		for range 5000 {
			key := store.issue(t)
			verify(t, v, key, nil)
			last = append(last, key)
		}
		if valid, _ := v.Remembered(); valid > 640 {
			t.Errorf("%d valid keys are remembered, want 640 at most", valid)
		}
		before := store.count()
		for _, key := range last[len(last)-50:] {
			verify(t, v, key, nil)
		}
		calls(t, store, before)
		verify(t, v, last[0], nil)
		calls(t, store, before+1)
	})
}

// A key that changes sides leaves no trace on the other one.
func TestKeyChangesSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{})
		key := store.issue(t)
		for range 3 {
			store.put(key, record{Principal: ann})
			verify(t, v, key, nil)
			if valid, invalid := v.Remembered(); valid != 1 || invalid != 0 {
				t.Errorf("remembered as valid %d times, as invalid %d times", valid, invalid)
			}
			time.Sleep(time.Second)
			store.put(key, record{Principal: ann, Revoked: time.Now()})
			verify(t, v, key, apikey.ErrRevoked)
			if valid, invalid := v.Remembered(); valid != 0 || invalid != 1 {
				t.Errorf("remembered as valid %d times, as invalid %d times", valid, invalid)
			}
			time.Sleep(time.Second)
		}
	})
}

// A key that expires while the answer is cached is refused at that instant. If its owner
// then prolongs it, it works within a second and not after the TTL.
func TestExpiryWithinALongTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{TTL: time.Hour})
		key := store.issue(t, func(r *record) { r.Expires = time.Now().Add(10 * time.Minute) })
		verify(t, v, key, nil)
		time.Sleep(10*time.Minute - time.Nanosecond)
		verify(t, v, key, nil)
		calls(t, store, 1)
		time.Sleep(time.Nanosecond)
		verify(t, v, key, apikey.ErrExpired)
		calls(t, store, 2)
		store.put(key, record{Principal: ann})
		time.Sleep(time.Second)
		verify(t, v, key, nil)
		calls(t, store, 3)
	})
}

// While a store takes longer than a second, requests do not join a look-up that is older
// than that. Its answer is cached all the same: otherwise no valid key would be cached as
// long as requests go on, and a slow store would be asked about all keys once a second.
func TestSlowLookUpIsCached(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.before = slow(1500 * time.Millisecond)
		v := newVerifier(t, store, apikey.Options{TTL: time.Hour})
		key := store.issue(t)
		for range 100 {
			go verify(t, v, key, nil)
			pass(100 * time.Millisecond)
		}
		calls(t, store, 2)
		began := time.Now()
		verify(t, v, key, nil)
		if waited := time.Since(began); waited > 0 {
			t.Errorf("a request waits for %v, want the cached answer", waited)
		}
	})
}
