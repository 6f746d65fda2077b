package bearer_test

import (
	"context"
	"log/slog"
	"net/http"
	"testing"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/bearer"
)

func TestRequireFailsClosed(t *testing.T) {
	rs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	auth, other := newAuth(bearer.Options{Errors: rs}), newAuth(bearer.Options{Errors: rs})
	never := http.HandlerFunc(func(http.ResponseWriter, *http.Request) { t.Error("the handler was called") })
	for name, h := range map[string]http.Handler{
		"without Identify":                     auth.Require(never),
		"inside of another one's Identify":     other.Identify(auth.Require(never)),
		"inside of one with another principal": otherType().Identify(auth.Require(never)),
	} {
		if w := serve(h, request("Bearer "+goodToken)); w.Code != 500 {
			t.Errorf("Require %s: answered %d, want 500", name, w.Code)
		}
	}
}

func otherType() *bearer.Authenticator[string] {
	return testcheck.Must(bearer.New("admin", func(context.Context, string) (string, error) { return "root", nil }, bearer.Options{}))
}

// Principals of two types live side by side; the outcome is that of the
// innermost.
func TestTwoAuthenticators(t *testing.T) {
	h := newAuth(bearer.Options{}).Identify(otherType().Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, ok := bearer.FromContext[user](r.Context()); ok {
			t.Error("a user is found for an unknown token")
		}
		if name, ok := bearer.FromContext[string](r.Context()); !ok || name != "root" {
			t.Errorf("string principal %q, %v, want root", name, ok)
		}
		if got := bearer.OutcomeFrom(r.Context()); got != bearer.Authenticated {
			t.Errorf("outcome %v, want that of the innermost authenticator", got)
		}
	})))
	serve(h, request("Bearer unknown"))
}

// Each Authenticator of one type of principals keeps to what it found itself, wherever its
// Require is, and FromContext returns what the innermost has found that has found one.
func TestAuthenticatorsOfOneType(t *testing.T) {
	rs := &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
	outer := newAuth(bearer.Options{Errors: rs})
	inner := testcheck.Must(bearer.New("staff", func(_ context.Context, token string) (user, error) {
		if token == goodToken || token == "staff" {
			return user{"bob"}, nil
		}
		return user{}, bearer.ErrInvalid
	}, bearer.Options{Errors: rs}))
	neither := testcheck.Must(bearer.New("none", func(context.Context, string) (user, error) { return user{}, bearer.ErrInvalid }, bearer.Options{Errors: rs}))
	for name, c := range map[string]struct {
		inner   *bearer.Authenticator[user]
		require *bearer.Authenticator[user]
		token   string
		status  int
		want    string
	}{
		"both find one":                      {inner, outer, goodToken, 200, "bob"},
		"both find one, inner Require":       {inner, inner, goodToken, 200, "bob"},
		"the outer finds one":                {neither, outer, goodToken, 200, "ann"},
		"the outer finds one, inner Require": {neither, neither, goodToken, 401, ""},
		"the inner finds one":                {inner, outer, "staff", 401, ""},
		"the inner finds one, inner Require": {inner, inner, "staff", 200, "bob"},
		"none finds one":                     {neither, outer, "unknown", 401, ""},
	} {
		w := serve(outer.Identify(c.inner.Identify(c.require.Require(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			u, _ := bearer.FromContext[user](r.Context())
			n, _ := bearer.FromContext[named](r.Context())
			if u.name != c.want || n == nil || n.Name() != c.want {
				t.Errorf("%s: found %v and %v, want %s", name, u, n, c.want)
			}
		})))), request("Bearer "+c.token))
		if w.Code != c.status {
			t.Errorf("%s: answered %d, want %d", name, w.Code, c.status)
		}
	}
}

// named is what some principals are, whatever their type.
type named interface{ Name() string }

func (u user) Name() string { return u.name }

func TestPrincipalByInterface(t *testing.T) {
	found := func(h func(http.Handler) http.Handler, authorization string) (name string) {
		serve(h(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if p, ok := bearer.FromContext[named](r.Context()); ok {
				name = "found " + p.Name()
			} else if p != nil {
				t.Errorf("principal %v, but not found", p)
			}
		})), request(authorization))
		return name
	}
	users, strings := newAuth(bearer.Options{}), otherType()
	anyNamed := testcheck.Must(bearer.New("any", func(context.Context, string) (named, error) { return user{"bob"}, nil }, bearer.Options{}))
	both := func(outer, inner func(http.Handler) http.Handler) func(http.Handler) http.Handler {
		return func(next http.Handler) http.Handler { return outer(inner(next)) }
	}
	for name, tt := range map[string]struct {
		wrap          func(http.Handler) http.Handler
		authorization string
		want          string
	}{
		"a type that implements it":                {users.Identify, "Bearer " + goodToken, "found ann"},
		"a type that does not":                     {strings.Identify, "Bearer " + goodToken, ""},
		"inside of a type that does not":           {both(strings.Identify, users.Identify), "Bearer " + goodToken, "found ann"},
		"outside of a type that does not":          {both(users.Identify, strings.Identify), "Bearer " + goodToken, "found ann"},
		"inside of the interface itself":           {both(anyNamed.Identify, users.Identify), "Bearer " + goodToken, "found ann"},
		"outside of the interface itself":          {both(users.Identify, anyNamed.Identify), "Bearer " + goodToken, "found bob"},
		"no token":                                 {users.Identify, "", ""},
		"a token that is not valid":                {users.Identify, "Bearer unknown", ""},
		"no authenticator":                         {func(next http.Handler) http.Handler { return next }, "Bearer " + goodToken, ""},
		"not valid, outside of a type without one": {both(users.Identify, strings.Identify), "Bearer unknown", ""},
	} {
		if got := found(tt.wrap, tt.authorization); got != tt.want {
			t.Errorf("%s: found %q, want %q", name, got, tt.want)
		}
	}
}
