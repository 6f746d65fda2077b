package apikey_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

// account is a service's own principal, which has what a Principal has.
type account struct {
	apikey.Principal
	Scopes []string
}

// number is a service's own principal without anything of this package.
type number int

// anyStore answers each look-up with one record.
type anyStore[P any] struct{ record apikey.Record[P] }

func (s anyStore[P]) Lookup(context.Context, apikey.Digest) (apikey.Record[P], error) {
	return s.record, nil
}

// principalOf returns what a Verifier makes of a principal of the store.
func principalOf[P any](t *testing.T, stored P) P {
	t.Helper()
	format, store := newFormat("pet_live_"), &anyStore[P]{apikey.Record[P]{Principal: stored}}
	v := must(apikey.NewVerifier(format, store, apikey.Options{}))
	p := must(v.Verify(t.Context(), format.Generate().Reveal()))
	if diff := cmp.Diff(stored, store.record.Principal); diff != "" {
		t.Errorf("the store's record was changed (-want +got):\n%s", diff)
	}
	return p
}

func TestOwnPrincipal(t *testing.T) {
	got := principalOf(t, account{Principal: apikey.Principal{Owner: "ann"}, Scopes: []string{"read"}})
	if got.Subject != "owner:ann" || got.Prefix != "pet_live_" || !slices.Equal(got.Scopes, []string{"read"}) {
		t.Errorf("principal %+v, want the subject and the prefix set, and the scopes of the store", got)
	}
	got = principalOf(t, account{Principal: apikey.Principal{Owner: "ann", Subject: "team:1", Prefix: "invented_"}})
	if got.Subject != "team:1" || got.Prefix != "pet_live_" {
		t.Errorf("principal %+v, want the subject of the store and the prefix of the key", got)
	}
	if got := principalOf(t, number(7)); got != 7 {
		t.Errorf("principal %v, want that of the store, 7", got)
	}
	if got := principalOf[any](t, 7); got != 7 {
		t.Errorf("principal %v, want that of the store, 7", got)
	}
	stored := new(number)
	if got := principalOf(t, stored); got != stored {
		t.Errorf("principal %v, want the pointer of the store", got)
	}
}

// Requests with the same key would race for what a pointer of the store points to.
func TestPrincipalBehindAPointerIsRefused(t *testing.T) {
	type shared struct {
		*apikey.Principal
		Scopes []string
	}
	type nested struct{ *account }
	refused(t, &apikey.Principal{})
	refused(t, &account{})
	refused(t, shared{})
	refused(t, nested{})
}

func refused[P any](t *testing.T, principal P) {
	t.Helper()
	_, err := apikey.NewVerifier(newFormat("pet_live_"), anyStore[P]{}, apikey.Options{})
	if err == nil || !strings.Contains(err.Error(), "by a pointer") {
		t.Errorf("principals of type %T: error %v, want one that says that they share a pointer", principal, err)
	}
}

func TestFromContext(t *testing.T) {
	for name, tt := range map[string]struct {
		identify func(http.Handler) http.Handler
		found    bool
	}{
		"a Principal":             {identify(ann), true},
		"a type that embeds one":  {identify(account{Principal: ann}), true},
		"a type without one":      {identify(number(7)), false},
		"no Authenticator at all": {func(next http.Handler) http.Handler { return next }, false},
	} {
		r := httptest.NewRequest("GET", "/v1/pets", nil)
		r.Header.Set("Authorization", "Bearer x")
		tt.identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p, ok := apikey.FromContext(r.Context()); ok != tt.found || ok && p != ann {
				t.Errorf("%s: principal %v, %v; want it found: %v", name, p, ok, tt.found)
			}
		})).ServeHTTP(httptest.NewRecorder(), r)
	}
}

// identify is the middleware of an Authenticator with one principal.
func identify[P any](principal P) func(http.Handler) http.Handler {
	auth := must(bearer.New("pets", func(context.Context, string) (P, error) { return principal, nil }, bearer.Options{}))
	return auth.Identify
}

// now is an instant in the past.
var now = time.Date(2020, 2, 20, 12, 0, 0, 0, time.UTC)

func TestRecordValid(t *testing.T) {
	tests := []struct {
		name   string
		record record
		want   error
	}{
		{"for ever", record{}, nil},
		{"before its expiry", record{Expires: now.Add(1)}, nil},
		{"at its expiry", record{Expires: now}, apikey.ErrExpired},
		{"after its expiry", record{Expires: now.Add(-1)}, apikey.ErrExpired},
		{"before its revocation", record{Revoked: now.Add(1)}, nil},
		{"at its revocation", record{Revoked: now}, apikey.ErrRevoked},
		{"revoked and expired", record{Revoked: now, Expires: now}, apikey.ErrRevoked},
		{"expired, revoked later", record{Revoked: now.Add(1), Expires: now}, apikey.ErrExpired},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if got := tt.record.Valid(now); got != tt.want {
				t.Errorf("Valid = %v, want %v", got, tt.want)
			}
		})
	}
}

func TestReasonsWrapErrInvalid(t *testing.T) {
	for _, err := range []error{apikey.ErrMalformed, apikey.ErrUnknown, apikey.ErrExpired, apikey.ErrRevoked} {
		if !errors.Is(err, bearer.ErrInvalid) {
			t.Errorf("%q does not wrap bearer.ErrInvalid", err)
		}
	}
}

func TestExpireAfter(t *testing.T) {
	const day = 24 * time.Hour
	tests := []struct {
		name          string
		expires, want time.Time
		overlap       time.Duration
	}{
		{"a key without an end", time.Time{}, now.Add(day), day},
		{"a key that lives longer", now.Add(30 * day), now.Add(day), day},
		{"a key that ends sooner", now.Add(time.Hour), now.Add(time.Hour), day},
		{"a key that ends at the same instant", now.Add(day), now.Add(day), day},
		{"a key that has ended", now.Add(-time.Hour), now.Add(-time.Hour), day},
		{"no overlap", time.Time{}, now, 0},
		{"negative overlap", time.Time{}, now, -day},
		{"negative overlap of a key that ends", now.Add(day), now, -day},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			old := record{Principal: ann, Expires: tt.expires, Revoked: now.Add(day)}
			got := old.ExpireAfter(now, tt.overlap)
			if !got.Expires.Equal(tt.want) {
				t.Errorf("expires %v, want %v", got.Expires, tt.want)
			}
			if got.Expires = old.Expires; got != old {
				t.Errorf("more than the expiry has changed: %v, want %v", got, old)
			}
		})
	}
}
