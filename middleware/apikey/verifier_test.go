package apikey_test

import (
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// What is no key of the format is refused without asking the store, even if the
// store would know it.
func TestVerifyAsksNothingForGarbage(t *testing.T) {
	store := newStore()
	v := newVerifier(t, store, apikey.Options{})
	key := store.issue(t)
	for _, bad := range []string{"", key[:44], key + "0", "x" + key, key[:44] + "-", damaged(key), newFormat(t, "pet_test_").Generate().Reveal(),
		strings.ToUpper(key), strings.Repeat("a", 8<<10)} {
		store.put(bad, record{Principal: ann})
		for range 2 {
			verify(t, v, bad, apikey.ErrMalformed)
		}
	}
	calls(t, store, 0)
}

func TestStoreFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{})
		key := store.issue(t)
		broken := errors.New("connection refused")
		failure := func(key string) {
			t.Helper()
			_, err := v.Verify(t.Context(), key)
			if !errors.Is(err, broken) || errors.Is(err, bearer.ErrInvalid) {
				t.Errorf("error %v, want one that wraps the store's and not bearer.ErrInvalid", err)
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
		failure(store.issue(t))
		calls(t, store, 3)

		store.fail(nil)
		verify(t, v, key, nil) // a failure is not remembered
	})
}

func TestNewVerifierRefuses(t *testing.T) {
	format, store := newFormat(t, "pet_live_"), newStore()
	tests := []struct {
		name   string
		format *apikey.Format
		store  apikey.Store[apikey.Principal]
		opts   apikey.Options
		want   string
	}{
		{"no format", nil, store, apikey.Options{}, "format"},
		{"zero format", new(apikey.Format), store, apikey.Options{}, "format"},
		{"nil among more formats", format, store, apikey.Options{MoreFormats: []*apikey.Format{nil}}, "Options.MoreFormats"},
		{"zero format among more", format, store, apikey.Options{MoreFormats: []*apikey.Format{{}}}, "Options.MoreFormats"},
		{"a prefix twice", format, store, apikey.Options{MoreFormats: []*apikey.Format{newFormat(t, "pet_live_")}}, "got pet_live_ twice"},
		{"no store", format, nil, apikey.Options{}, "store"},
		{"a store that was not set", format, storeFunc(nil), apikey.Options{}, "store"},
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
	live, test, old := newFormat(t, "pet_live_"), newFormat(t, "pet_test_"), newFormat(t, "pet_")
	store := newStore()
	v, err := apikey.NewVerifier(live, store, apikey.Options{
		MoreFormats: []*apikey.Format{test, old},
	})
	if err != nil {
		t.Fatal(err)
	}
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
	if _, err := v.Verify(t.Context(), newFormat(t, "pet_dev_").Generate().Reveal()); err != apikey.ErrMalformed {
		t.Errorf("a key of a format that is not accepted: %v, want %v", err, apikey.ErrMalformed)
	}
}

// A clock that is set back keeps no answer for longer than the times that it was made for.
func TestClockSetBack(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	store := newStore()
	v := newVerifier(t, store, apikey.Options{Now: func() time.Time { return now }})
	key := store.issue(t)
	if _, err := v.Verify(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	now = now.Add(-time.Hour)
	before := store.count()
	now = now.Add(30 * time.Minute)
	if _, err := v.Verify(t.Context(), key); err != nil || store.count() == before {
		t.Errorf("half an hour after the clock was set back by an hour: %v, %d look-ups, want another one", err, store.count()-before)
	}
}
