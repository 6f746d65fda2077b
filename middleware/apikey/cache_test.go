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
			revoked := store.issue(t, func(r *apikey.Record) { r.Revoked = time.Now() })
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

// Whatever the traffic, a revocation and a new key act within a second.
func TestChangesActWithinOneSecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{})
		leaves := store.issue(t)
		arrives := newFormat(t, "pet_live_").Generate().Reveal()
		start := time.Now()
		changed := start.Add(2345 * time.Millisecond)
		for time.Since(start) < 5*time.Second {
			if time.Now().Equal(changed) {
				store.put(leaves, apikey.Record{Principal: ann, Revoked: time.Now()})
				store.put(arrives, apikey.Record{Principal: ann})
			}
			_, errLeaves := v.Verify(t.Context(), leaves)
			_, errArrives := v.Verify(t.Context(), arrives)
			switch since := time.Since(changed); {
			case since < 0 && (errLeaves != nil || errArrives == nil):
				t.Fatalf("before the change: %v, %v", errLeaves, errArrives)
			case since >= time.Second && (errLeaves != apikey.ErrRevoked || errArrives != nil):
				t.Fatalf("%v after the change: revoked key %v, new key %v", since, errLeaves, errArrives)
			}
			time.Sleep(5 * time.Millisecond)
		}
		if got := store.count(); got > 12 {
			t.Errorf("the store was asked %d times about two keys in five seconds, want twelve times at most", got)
		}
	})
}

// The instants in a record are honoured to the nanosecond, without asking again.
func TestExpiryIsExactThoughRemembered(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const left = 300 * time.Millisecond
		for name, tt := range map[string]struct {
			edit func(*apikey.Record)
			want error
		}{
			"expiry":     {func(r *apikey.Record) { r.Expires = time.Now().Add(left) }, apikey.ErrExpired},
			"revocation": {func(r *apikey.Record) { r.Revoked = time.Now().Add(left) }, apikey.ErrRevoked},
		} {
			t.Log(name)
			store := newStore()
			v := newVerifier(t, store, apikey.Options{})
			key := store.issue(t, tt.edit)
			verify(t, v, key, nil)
			time.Sleep(left - time.Nanosecond)
			verify(t, v, key, nil)
			time.Sleep(time.Nanosecond)
			verify(t, v, key, tt.want)
			calls(t, store, 1)
		}
	})
}

// An expiry that passes while the store is being asked counts.
func TestExpiryDuringLookUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		store.before = func(context.Context, apikey.Digest) { time.Sleep(100 * time.Millisecond) }
		v := newVerifier(t, store, apikey.Options{})
		key := store.issue(t, func(r *apikey.Record) { r.Expires = time.Now().Add(50 * time.Millisecond) })
		verify(t, v, key, apikey.ErrExpired)
	})
}

// Capacity bounds memory, and a flood of well-formed keys that were never issued does
// not displace the valid ones.
func TestFloodOfUnknownKeys(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{Capacity: 640})
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
		v := newVerifier(t, store, apikey.Options{Capacity: 640})
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
			store.put(key, apikey.Record{Principal: ann})
			verify(t, v, key, nil)
			if valid, invalid := v.Remembered(); valid != 1 || invalid != 0 {
				t.Errorf("remembered as valid %d times, as invalid %d times", valid, invalid)
			}
			time.Sleep(time.Second)
			store.put(key, apikey.Record{Principal: ann, Revoked: time.Now()})
			verify(t, v, key, apikey.ErrRevoked)
			if valid, invalid := v.Remembered(); valid != 0 || invalid != 1 {
				t.Errorf("remembered as valid %d times, as invalid %d times", valid, invalid)
			}
			time.Sleep(time.Second)
		}
	})
}

// A clock without a monotonic reading that is set back must not keep an answer
// good until it has caught up.
func TestClockSetBack(t *testing.T) {
	clock := now
	store := newStore()
	v := newVerifier(t, store, apikey.Options{Now: func() time.Time { return clock }})
	key := store.issue(t)
	verify(t, v, key, nil)
	clock = clock.Add(-time.Hour)
	store.put(key, apikey.Record{Principal: ann, Revoked: clock})
	verify(t, v, key, apikey.ErrRevoked)
	clock = clock.Add(999 * time.Millisecond)
	verify(t, v, key, apikey.ErrRevoked)
	calls(t, store, 2)
}
