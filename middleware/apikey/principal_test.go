package apikey_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

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
	format := newFormat(t, "pet_live_")
	v, err := apikey.NewVerifier(format, anyStore[P]{apikey.Record[P]{Principal: stored}}, apikey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := v.Verify(t.Context(), format.Generate().Reveal())
	if err != nil {
		t.Fatal(err)
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
	_, err := apikey.NewVerifier(newFormat(t, "pet_live_"), anyStore[P]{}, apikey.Options{})
	if err == nil || !strings.Contains(err.Error(), "by a pointer") {
		t.Errorf("principals of type %T: error %v, want one that says that they share a pointer", principal, err)
	}
}

// What the Verifier sets is not written into the store's value, and handlers get the
// service's type.
func TestOwnPrincipalBehindBearer(t *testing.T) {
	format := newFormat(t, "pet_live_")
	store := &anyStore[account]{apikey.Record[account]{Principal: account{Scopes: []string{"write"}}}}
	v, err := apikey.NewVerifier(format, store, apikey.Options{})
	if err != nil {
		t.Fatal(err)
	}
	auth, err := bearer.New("pets", v.Verify, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	called := false
	h := auth.Protect(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		called = true
		if p, ok := apikey.FromContext(r.Context()); !ok || p.Prefix != "pet_live_" {
			t.Errorf("embedded principal %+v, %v; want the one of the account", p, ok)
		}
		if p, ok := bearer.FromContext[account](r.Context()); !ok || !slices.Contains(p.Scopes, "write") {
			t.Errorf("principal %+v, %v; want the account with its scopes", p, ok)
		}
	}))
	r := httptest.NewRequest("GET", "/v1/pets", nil)
	r.Header.Set("Authorization", "Bearer "+format.Generate().Reveal())
	h.ServeHTTP(httptest.NewRecorder(), r)
	if !called {
		t.Error("the handler was not called")
	}
	if p := store.record.Principal; p.Prefix != "" || p.Subject != "" {
		t.Errorf("the store's record was changed: %+v", p)
	}
}

func TestFromContext(t *testing.T) {
	for name, tt := range map[string]struct {
		identify func(http.Handler) http.Handler
		found    bool
	}{
		"a Principal":             {identify(t, ann), true},
		"a type that embeds one":  {identify(t, account{Principal: ann}), true},
		"a type without one":      {identify(t, number(7)), false},
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
func identify[P any](t *testing.T, principal P) func(http.Handler) http.Handler {
	t.Helper()
	auth, err := bearer.New("pets", func(context.Context, string) (P, error) { return principal, nil }, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return auth.Identify
}
