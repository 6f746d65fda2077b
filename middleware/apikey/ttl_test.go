package apikey_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
)

// A revocation takes effect when the TTL ends, and neither the failure of the store nor
// the traffic makes it later.
func TestTTLOfAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{TTL: time.Minute})
		key := store.issue(t)
		verify(t, v, key, nil)
		store.put(key, apikey.Record{Principal: ann, Revoked: time.Now()})
		store.fail(errors.New("connection refused"))
		for range 59 {
			time.Sleep(time.Second)
			verify(t, v, key, nil)
		}
		time.Sleep(time.Second - time.Nanosecond)
		verify(t, v, key, nil)
		calls(t, store, 1)
		store.fail(nil)
		time.Sleep(time.Nanosecond)
		verify(t, v, key, apikey.ErrRevoked)
		calls(t, store, 2)
	})
}

// That a key is not valid is never cached for longer than a second, so a key that is
// made, or made valid again, works within one.
func TestTTLOfKeysThatAreNotValid(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for name, start := range map[string]struct {
			record *apikey.Record
			want   error
		}{
			"unknown": {nil, apikey.ErrUnknown},
			"revoked": {&apikey.Record{Principal: ann, Revoked: time.Now()}, apikey.ErrRevoked},
			"expired": {&apikey.Record{Principal: ann, Expires: time.Now()}, apikey.ErrExpired},
		} {
			t.Log(name)
			store := newStore()
			v := newVerifier(t, store, apikey.Options{TTL: time.Hour})
			key := newFormat(t, "pet_live_").Generate().Reveal()
			if start.record != nil {
				store.put(key, *start.record)
			}
			verify(t, v, key, start.want)
			store.put(key, apikey.Record{Principal: ann})
			time.Sleep(time.Second - time.Nanosecond)
			verify(t, v, key, start.want)
			calls(t, store, 1)
			time.Sleep(time.Nanosecond)
			verify(t, v, key, nil)
			calls(t, store, 2)
		}
	})
}

// A key that expires while the answer is cached is refused at that instant. If its owner
// then prolongs it, it works within a second and not after the TTL.
func TestExpiryWithinALongTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{TTL: time.Hour})
		key := store.issue(t, func(r *apikey.Record) { r.Expires = time.Now().Add(10 * time.Minute) })
		verify(t, v, key, nil)
		time.Sleep(10*time.Minute - time.Nanosecond)
		verify(t, v, key, nil)
		calls(t, store, 1)
		time.Sleep(time.Nanosecond)
		verify(t, v, key, apikey.ErrExpired)
		calls(t, store, 2)
		store.put(key, apikey.Record{Principal: ann})
		time.Sleep(time.Second)
		verify(t, v, key, nil)
		calls(t, store, 3)
	})
}

// A look-up that began more than a second ago may have missed a key that was made since.
func TestLongTTLDoesNotPutOffANewKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{TTL: time.Hour, Timeout: time.Minute})
		format := newFormat(t, "pet_live_")
		key := format.Generate().Reveal()
		store.stale(10 * time.Second)
		first := later(t.Context(), v, key)
		pass(500 * time.Millisecond)
		store.put(key, apikey.Record{Principal: ann})
		store.stale(0)
		pass(500 * time.Millisecond)
		verify(t, v, key, nil)
		if err := <-first; err != apikey.ErrUnknown {
			t.Errorf("the request that began the slow look-up: got %v, want %v", err, apikey.ErrUnknown)
		}
		verify(t, v, key, nil)
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

// It is not cached if a later look-up has answered before, nor after Forget.
func TestSlowLookUpIsOvertaken(t *testing.T) {
	for name, forget := range map[string]bool{"by a later one": false, "by Forget": true} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := newStore()
				v := newVerifier(t, store, apikey.Options{TTL: time.Hour, Timeout: time.Minute})
				key := store.issue(t)
				store.stale(3 * time.Second)
				first := later(t.Context(), v, key)
				pass(1500 * time.Millisecond)
				if forget {
					later(t.Context(), v, key) // replaces the first
					pass(100 * time.Millisecond)
				}
				store.put(key, apikey.Record{Principal: ann, Revoked: time.Now()})
				store.stale(0)
				if forget {
					v.Forget(apikey.DigestOf(key))
				} else {
					verify(t, v, key, apikey.ErrRevoked)
				}
				if err := <-first; err != nil {
					t.Errorf("the request that came before the revocation: %v", err)
				}
				verify(t, v, key, apikey.ErrRevoked)
				pass(time.Minute)
			})
		})
	}
}

// A clock that is set back by less than the TTL does not prolong an answer by as much.
func TestClockSetBackWithinALongTTL(t *testing.T) {
	clock := now
	store := newStore()
	v := newVerifier(t, store, apikey.Options{TTL: time.Hour, Now: func() time.Time { return clock }})
	key := store.issue(t)
	verify(t, v, key, nil)
	clock = clock.Add(-time.Second)
	verify(t, v, key, nil)
	calls(t, store, 2)
}

func TestForget(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{TTL: time.Hour})
		key, other := store.issue(t), store.issue(t)
		fresh := newFormat(t, "pet_live_").Generate().Reveal()
		verify(t, v, key, nil)
		verify(t, v, other, nil)
		verify(t, v, fresh, apikey.ErrUnknown)
		store.put(key, apikey.Record{Principal: ann, Revoked: time.Now()})
		store.put(fresh, apikey.Record{Principal: ann})
		v.Forget(apikey.DigestOf(key))
		v.Forget(apikey.DigestOf(fresh))
		v.Forget(apikey.DigestOf("never seen"))
		if valid, invalid := v.Remembered(); valid != 1 || invalid != 0 {
			t.Errorf("%d valid keys and %d others are remembered, want 1 and 0", valid, invalid)
		}
		verify(t, v, key, apikey.ErrRevoked)
		verify(t, v, fresh, nil)
		calls(t, store, 5)
		verify(t, v, other, nil)
		calls(t, store, 5)
	})
}

// A look-up that read the store before a revocation must not bring the key back after
// Forget.
func TestForgetDuringALookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{TTL: time.Hour})
		key := store.issue(t)
		store.stale(500 * time.Millisecond)
		first := later(t.Context(), v, key)
		pass(100 * time.Millisecond)

		store.put(key, apikey.Record{Principal: ann, Revoked: time.Now()})
		store.stale(0)
		v.Forget(apikey.DigestOf(key))
		verify(t, v, key, apikey.ErrRevoked)
		if err := <-first; err != nil {
			t.Errorf("the request that came before the revocation: %v", err)
		}
		verify(t, v, key, apikey.ErrRevoked)
		if valid, invalid := v.Remembered(); valid != 0 || invalid != 1 || v.UnderWay() != 0 {
			t.Errorf("%d valid keys and %d others are remembered, %d look-ups under way; want 0, 1, 0", valid, invalid, v.UnderWay())
		}
	})
}
