package telemetry_test

import (
	"context"
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/telemetry"
)

// newAuth knows one token.
func newAuth(t *testing.T) *bearer.Authenticator[string] {
	t.Helper()
	auth, err := bearer.New("pets", func(_ context.Context, token string) (string, error) {
		switch token {
		case "good":
			return "ann", nil
		case "bad":
			return "", bearer.ErrInvalid
		}
		return "", errors.New("the store is away")
	}, bearer.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

func TestAuthenticationsAreCountedByOutcome(t *testing.T) {
	c := collect(t, telemetry.Options{})
	auth := newAuth(t)
	count := c.Authentication(http.NotFoundHandler())
	for _, tokens := range [][]string{{"Bearer good"}, {"Bearer good"}, {"Bearer bad"}, {"Bearer x"}, {}, {"Bearer a", "Bearer a"}} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Authorization"] = tokens
		w := httptest.NewRecorder()
		auth.Identify(count).ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("Authorization %q: status %d, want that of the handler inside, 404", tokens, w.Code)
		}
	}
	count.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	want := map[string]int64{
		"authenticated": 2, "invalid": 1, "unavailable": 1, "missing": 1, "repeated": 1, "unidentified": 1,
	}
	if diff := cmp.Diff(want, c.series(t, "gatehouse.authentication.requests")); diff != "" {
		t.Errorf("requests by outcome (-want +got):\n%s", diff)
	}
}

// CallAuthentication counts calls as Authentication counts requests, once each, and changes
// nothing else.
func TestAuthenticationsOfCallsAreCounted(t *testing.T) {
	c := collect(t, telemetry.Options{})
	var none *telemetry.Telemetry
	auth := newAuth(t)
	for _, a := range []telemetry.Authenticator{c.CallAuthentication(auth), none.CallAuthentication(auth)} {
		for token, status := range map[string]int{"Bearer good": 0, "Bearer bad": 401, "Bearer x": 503, "": 401} {
			var authorization []string
			if token != "" {
				authorization = []string{token}
			}
			ctx := a.IdentifyCall(t.Context(), "/pets.v1.Pets/Get", authorization)
			for _, require := range []telemetry.Authenticator{a, auth} {
				_, err := require.RequireCall(ctx, "/pets.v1.Pets/Get")
				if err == nil && status != 0 || err != nil && err.Status != status {
					t.Errorf("%q: %v, want the status %d", token, err, status)
				}
			}
		}
	}
	want := map[string]int64{
		"authenticated": 1, "invalid": 1, "unavailable": 1, "missing": 1, "repeated": 0, "unidentified": 0,
	}
	if diff := cmp.Diff(want, c.series(t, "gatehouse.authentication.requests")); diff != "" {
		t.Errorf("calls by outcome (-want +got):\n%s", diff)
	}
}
