package apikey_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// Any error but ErrUnknown is a failure, also one that says why the key is not valid.
func TestStoreFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		storeFails(t, errors.New("connection refused"))
		storeFails(t, apikey.ErrRevoked)
	})
}

func storeFails(t *testing.T, broken error) {
	store := newStore()
	v := newVerifier(store, apikey.Options{})
	key := store.issue()
	failure := func(key string) {
		t.Helper()
		_, err := v.Verify(t.Context(), key)
		if !errors.Is(err, broken) || errors.Is(err, bearer.ErrInvalid) != errors.Is(broken, bearer.ErrInvalid) {
			t.Errorf("error %v, want one that wraps %v", err, broken)
		}
		if strings.Contains(err.Error(), key[9:]) {
			t.Errorf("error %q holds the key", err)
		}
	}

	verify(t, v, key, nil)
	store.fail(broken)
	time.Sleep(999 * time.Millisecond)
	verify(t, v, key, nil) // still good
	time.Sleep(time.Millisecond)
	failure(key) // and not served beyond its time
	failure(store.issue())
	calls(t, store, 3)

	store.fail(nil)
	verify(t, v, key, nil) // a failure is not remembered
}

func TestNewVerifierRefuses(t *testing.T) {
	format, store := newFormat("pet_live_"), newStore()
	tests := []struct {
		name   string
		format *apikey.Format
		store  apikey.Store[apikey.Principal]
		opts   apikey.Options
		want   string
	}{
		{"no format and more of them", nil, store, apikey.Options{MoreFormats: []*apikey.Format{format}}, "or be nil without Options.MoreFormats"},
		{"zero format", new(apikey.Format), store, apikey.Options{}, "format"},
		{"nil among more formats", format, store, apikey.Options{MoreFormats: []*apikey.Format{nil}}, "Options.MoreFormats"},
		{"zero format among more", format, store, apikey.Options{MoreFormats: []*apikey.Format{{}}}, "Options.MoreFormats"},
		{"a prefix twice", format, store, apikey.Options{MoreFormats: []*apikey.Format{newFormat("pet_live_")}}, "got pet_live_ twice"},
		{"no store", format, nil, apikey.Options{}, "store"},
		{"a store that was not set", format, storeFunc(nil), apikey.Options{}, "store"},
		{"guesses without a plan", nil, store, apikey.Options{Guesses: new(ratelimit.Plan)}, "Options.Guesses: "},
		{"suspended guesses", nil, store, apikey.Options{Guesses: ratelimit.SuspendedPlan("none")}, "Options.Guesses must not be suspended, got none suspended"},
		{"negative TTL", format, store, apikey.Options{TTL: -1}, "Options.TTL"},
		{"TTL of more than a day", format, store, apikey.Options{TTL: 24*time.Hour + 1}, "Options.TTL must be from 0s to 24h0m0s"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			_, err := apikey.NewVerifier(tt.format, tt.store, tt.opts)
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want one that names %s", err, tt.want)
			}
		})
	}
}

// Keys of several formats are verified by one Verifier, and the principal says which
// format a key has, also when the answer is cached.
func TestMoreFormats(t *testing.T) {
	live, test, old := newFormat("pet_live_"), newFormat("pet_test_"), newFormat("pet_")
	store := newStore()
	more := append(make([]*apikey.Format, 0, 3), test, old)
	v := newVerifier(store, apikey.Options{MoreFormats: more})
	more[0] = newFormat("pet_dev_") // the Verifier has a copy
	for prefix, format := range map[string]*apikey.Format{"pet_live_": live, "pet_test_": test, "pet_": old} {
		key := format.Generate().Reveal()
		store.put(key, record{Principal: ann})
		for range 2 {
			p, err := v.Verify(t.Context(), key)
			if err != nil || p.Prefix != prefix || p.Owner != ann.Owner {
				t.Errorf("a key of %s: principal %v, error %v; want ann's with that prefix", prefix, p, err)
			}
		}
		if _, err := v.Verify(t.Context(), format.Generate().Reveal()); err != apikey.ErrUnknown {
			t.Errorf("a key of %s that was never issued: %v, want %v", prefix, err, apikey.ErrUnknown)
		}
		if _, err := v.Verify(t.Context(), damaged(key)); err != apikey.ErrMalformed {
			t.Errorf("a damaged key of %s: %v, want %v", prefix, err, apikey.ErrMalformed)
		}
	}
	calls(t, store, 6)

	// The same body with another prefix has another checksum and another digest.
	key := live.Generate().Reveal()
	store.put(key, record{Principal: ann})
	if _, err := v.Verify(t.Context(), "pet_test_"+key[len("pet_live_"):]); err != apikey.ErrMalformed {
		t.Errorf("a live key with the prefix of a test key: %v, want %v", err, apikey.ErrMalformed)
	}
	if _, err := v.Verify(t.Context(), newFormat("pet_dev_").Generate().Reveal()); err != apikey.ErrMalformed {
		t.Errorf("a key of a format that is not accepted: %v, want %v", err, apikey.ErrMalformed)
	}
}

// A clock that is set back keeps no answer for longer than the times that it was made for.
func TestClockSetBack(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	store := newStore()
	v := newVerifier(store, apikey.Options{Now: func() time.Time { return now }})
	key := store.issue()
	must(v.Verify(t.Context(), key))
	now = now.Add(-time.Hour)
	before := store.count()
	now = now.Add(30 * time.Minute)
	if _, err := v.Verify(t.Context(), key); err != nil || store.count() == before {
		t.Errorf("half an hour after the clock was set back by an hour: %v, %d look-ups, want another one", err, store.count()-before)
	}
}

func TestAnswersAreRememberedForOneTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for ttl, opts := range map[time.Duration]apikey.Options{
			time.Second:            {},
			100 * time.Millisecond: {TTL: 100 * time.Millisecond},
		} {
			store := newStore()
			v := newVerifier(store, opts)
			known, unknown := store.issue(), newFormat("pet_live_").Generate().Reveal()
			revoked := store.issue(func(r *record) { r.Revoked = time.Now() })
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

// The capacity bounds memory, and a flood of well-formed keys that were never issued does
// not displace the valid ones.
func TestCapacity(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(store, apikey.Options{})
		v.Shrink(640, 32)
		format := newFormat("pet_live_")
		var issued []string
		for range 5000 {
			issued = append(issued, store.issue())
			verify(t, v, issued[len(issued)-1], nil)
		}
		for range 5000 {
			verify(t, v, format.Generate().Reveal(), apikey.ErrUnknown)
		}
		if valid, invalid := v.Remembered(); valid > 640 || invalid > 640 || invalid < 320-32 {
			t.Errorf("%d valid keys are remembered and %d others, want 640 at most, and of the others half of that at least", valid, invalid)
		}
		before := store.count()
		for _, key := range issued[len(issued)-100:] {
			verify(t, v, key, nil)
		}
		calls(t, store, before)
		verify(t, v, issued[0], nil)
		calls(t, store, before+1)
	})
}

// A key that changes sides leaves no trace on the other one.
func TestKeyChangesSides(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(store, apikey.Options{})
		key := store.issue()
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

// A key that expires during the look-up, or while the answer is cached, is refused at that
// instant. If its owner
// then prolongs it, it works within a second and not after the TTL.
func TestExpiryWithinALongTTL(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(store, apikey.Options{TTL: time.Hour})
		store.before = slow(100 * time.Millisecond)
		verify(t, v, store.issue(func(r *record) { r.Expires = time.Now().Add(50 * time.Millisecond) }), apikey.ErrExpired)
		store.before, store.calls = nil, 0
		key := store.issue(func(r *record) { r.Expires = time.Now().Add(10 * time.Minute) })
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
		v := newVerifier(store, apikey.Options{TTL: time.Hour})
		key := store.issue()
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
