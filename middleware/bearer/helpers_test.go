package bearer_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
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
	case "busy":
		return user{}, fmt.Errorf("asking: %w", &apierror.Error{Status: 429, Code: "slow_down", Message: "Slowly.", RetryAfter: 1500 * time.Millisecond})
	case "maintained":
		return user{}, fmt.Errorf("asking: %w", &apierror.Error{Status: 500, Code: "maintenance", RetryAfter: time.Minute})
	case "ended":
		return user{}, apierror.New(401, "session_ended", "The session has ended.")
	case "narrow":
		return user{}, apierror.New(403, "insufficient_scope", "The token does not allow this.")
	case "blocked":
		return user{}, apierror.New(403, "blocked", "The account is blocked.")
	case "nothing":
		return user{}, (*apierror.Error)(nil)
	default:
		return user{}, fmt.Errorf("token is unknown: %w", bearer.ErrInvalid)
	}
}

func newAuth(opts bearer.Options) *bearer.Authenticator[user] {
	return testcheck.Must(bearer.New("pets", verify, opts))
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
