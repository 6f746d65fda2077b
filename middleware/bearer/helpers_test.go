package bearer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/animalstore/gatehouse/middleware/bearer"
)

// user is the principal in these tests.
type user struct{ name string }

const goodToken = "good-token"

// verify knows one token, one that is not valid, and a store that is down.
func verify(_ context.Context, token string) (user, error) {
	switch token {
	case goodToken:
		return user{"ann"}, nil
	case "down":
		return user{}, errors.New("connection refused")
	default:
		return user{}, fmt.Errorf("token is unknown: %w", bearer.ErrInvalid)
	}
}

func newAuth(t testing.TB, opts bearer.Options) *bearer.Authenticator[user] {
	t.Helper()
	auth, err := bearer.New("pets", verify, opts)
	if err != nil {
		t.Fatal(err)
	}
	return auth
}

// request is a GET with the lines of an Authorization field.
func request(lines ...string) *http.Request {
	r := httptest.NewRequest("GET", "/v1/pets", nil)
	if lines != nil {
		r.Header["Authorization"] = lines
	}
	return r
}

func serve(h http.Handler, r *http.Request) *httptest.ResponseRecorder {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

// outcome returns what auth finds out about a request.
func outcome(auth *bearer.Authenticator[user], r *http.Request) (found bearer.Outcome) {
	serve(auth.Identify(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		found = bearer.OutcomeFrom(r.Context())
	})), r)
	return found
}
