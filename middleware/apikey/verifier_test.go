package apikey_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// verify verifies a key and holds the result against the error that is wanted.
func verify(t *testing.T, v *apikey.Verifier[apikey.Principal], key string, want error) {
	t.Helper()
	principal, err := v.Verify(context.Background(), key)
	if err != want {
		t.Errorf("Verify: error %v, want %v", err, want)
	}
	wantPrincipal := ann
	wantPrincipal.Subject, wantPrincipal.Prefix = "owner:ann", "pet_live_"
	if want != nil {
		wantPrincipal = apikey.Principal{}
	}
	if principal != wantPrincipal {
		t.Errorf("Verify: principal %v, want %v", principal, wantPrincipal)
	}
}

func calls(t *testing.T, store *memStore, want int) {
	t.Helper()
	if got := store.count(); got != want {
		t.Errorf("the store was asked %d times, want %d", got, want)
	}
}

func TestVerify(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := newStore()
		v := newVerifier(t, store, apikey.Options{})
		revoked := func(r *apikey.Record) { r.Revoked = time.Now() }
		expired := func(r *apikey.Record) { r.Expires = time.Now() }

		verify(t, v, store.issue(t), nil)
		verify(t, v, store.issue(t, revoked), apikey.ErrRevoked)
		verify(t, v, store.issue(t, expired), apikey.ErrExpired)
		verify(t, v, newFormat(t, "pet_live_").Generate().Reveal(), apikey.ErrUnknown)
	})
}

func TestSubjectOfStoreIsKept(t *testing.T) {
	store := newStore()
	key := store.issue(t, func(r *apikey.Record) { r.Principal.Subject = "team:ann" })
	p, err := newVerifier(t, store, apikey.Options{}).Verify(t.Context(), key)
	if err != nil || p.Subject != "team:ann" {
		t.Errorf("Verify: subject %q, error %v, want the subject that the store named", p.Subject, err)
	}
}

// What is no key of the format is refused without asking the store, even if the
// store would know it.
func TestVerifyAsksNothingForGarbage(t *testing.T) {
	store := newStore()
	v := newVerifier(t, store, apikey.Options{})
	key := store.issue(t)
	for _, bad := range []string{"", key[:44], key + "0", "x" + key, key[:44] + "-", damaged(key), newFormat(t, "pet_test_").Generate().Reveal(),
		strings.ToUpper(key), strings.Repeat("a", 8<<10)} {
		store.put(bad, apikey.Record{Principal: ann})
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

func TestVerifierBehindBearer(t *testing.T) {
	store := newStore()
	auth, err := bearer.New("pets", newVerifier(t, store, apikey.Options{}).Verify, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	h := auth.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got, _ := bearer.FromContext[apikey.Principal](r.Context()); got.KeyID != ann.KeyID {
			t.Errorf("principal %v, want %v", got, ann)
		}
	}))
	key := store.issue(t)
	revoked := store.issue(t, func(r *apikey.Record) { r.Revoked = now })
	unknown := newFormat(t, "pet_live_").Generate().Reveal()
	answers := map[string]string{}
	for name, token := range map[string]string{"valid": key, "revoked": revoked, "unknown": unknown, "wrong checksum": damaged(key)} {
		r := httptest.NewRequest("GET", "/v1/pets", nil)
		r.Header.Set("Authorization", "Bearer "+token)
		w := httptest.NewRecorder()
		h.ServeHTTP(w, r)
		answers[name] = w.Result().Status + w.Header().Get("WWW-Authenticate") + w.Body.String()
	}
	if got := answers["valid"]; got != "200 OK" {
		t.Errorf("a valid key is answered %q", got)
	}
	for _, name := range []string{"revoked", "wrong checksum"} {
		if diff := cmp.Diff(answers["unknown"], answers[name]); diff != "" {
			t.Errorf("the answer to a key that is %s differs from that to an unknown one:\n%s", name, diff)
		}
	}
	if !strings.HasPrefix(answers["unknown"], "401") {
		t.Errorf("an unknown key is answered %q, want 401", answers["unknown"])
	}
}

func TestNewVerifierRefuses(t *testing.T) {
	format, store := newFormat(t, "pet_live_"), newStore()
	tests := []struct {
		name   string
		format *apikey.Format
		store  apikey.Store
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
		{"capacity", format, store, apikey.Options{Capacity: -1}, "Options.Capacity"},
		{"timeout", format, store, apikey.Options{Timeout: -1}, "Options.Timeout"},
		{"unknown look-ups", format, store, apikey.Options{UnknownLookups: -1}, "Options.UnknownLookups"},
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
