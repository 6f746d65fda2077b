package bearer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
)

// ErrInvalid is wrapped by the errors with which a [VerifyFunc] says that a token
// is not valid.
var ErrInvalid = errors.New("bearer: token not valid")

// A VerifyFunc tells whom a token belongs to. An error that wraps [ErrInvalid]
// means that the token is not valid, which is 401; any other error means that
// it could not be told, which is 503. It is called only with a token of the right
// form, at most [Options.MaxToken] octets long, and with the request's context.
// It must be safe for concurrent use.
type VerifyFunc[P any] func(ctx context.Context, token string) (P, error)

// An Authenticator finds out the principal of type P on whose behalf a request
// is made, and refuses requests that have none. It is made by [New], never
// changes, and is safe for concurrent use.
type Authenticator[P any] struct {
	verify     VerifyFunc[P]
	maxToken   int
	responder  *apierror.Responder
	missing    []string // WWW-Authenticate, with the capacity 1 since it is shared
	invalid    []string // likewise
	retryAfter []string // Retry-After, likewise
}

var (
	errMissing = apierror.New(http.StatusUnauthorized, apierror.CodeMissingAPIKey,
		"No API key was sent. Send it as Authorization: Bearer <API key>.")
	errInvalid = apierror.New(http.StatusUnauthorized, apierror.CodeInvalidAPIKey,
		"The API key is not valid.")
	errUnavailable = apierror.New(http.StatusServiceUnavailable, apierror.CodeUnavailable,
		"The API key cannot be checked at the moment.")
	errNotIdentified = errors.New("bearer: Require is not inside of the same Authenticator's Identify")
)

// New returns an Authenticator. The realm names what the tokens are good for in
// the challenge of a 401; it is not empty, and of printable ASCII without
// quotation marks and backslashes.
func New[P any](realm string, verify VerifyFunc[P], opts Options) (*Authenticator[P], error) {
	if err := checkText(realm); err != nil {
		return nil, fmt.Errorf("bearer: realm: %w", err)
	}
	if verify == nil {
		return nil, errors.New("bearer: verify function is nil")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts = opts.withDefaults()
	return &Authenticator[P]{
		verify:     verify,
		maxToken:   opts.MaxToken,
		responder:  opts.Errors,
		missing:    []string{challenge(realm, "")},
		invalid:    []string{challenge(realm, opts.Description)},
		retryAfter: []string{seconds(opts.RetryAfter)},
	}, nil
}

// Identify returns a handler that finds out the principal of a request and calls
// next, whatever the outcome: see [OutcomeFrom] and [FromContext]. It refuses
// nobody.
func (a *Authenticator[P]) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(a.identify(r)))
	})
}

func (a *Authenticator[P]) identify(r *http.Request) *identity[P] {
	id := &identity[P]{Context: r.Context(), by: a}
	var token string
	token, id.outcome = credentials(r.Header["Authorization"], a.maxToken)
	if id.outcome != Authenticated {
		return id
	}
	principal, err := a.verify(id.Context, token)
	switch {
	case err == nil:
		id.principal = principal
	case errors.Is(err, ErrInvalid):
		id.outcome = Invalid
	default:
		id.outcome, id.cause = Unavailable, err
	}
	return id
}

// Require returns a handler that calls next for requests with a principal, and
// answers all others: 401 with a challenge if there is no token or it is not
// valid, 503 with Retry-After if it could not be verified.
//
// It must be inside of Identify of the same Authenticator. Otherwise it answers
// 500 to everybody and logs why.
func (a *Authenticator[P]) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id, ok := r.Context().Value(principalKey[P]{}).(*identity[P])
		if !ok || id.by != a {
			a.responder.Respond(w, r, errNotIdentified)
			return
		}
		switch id.outcome {
		case Authenticated:
			next.ServeHTTP(w, r)
		case Missing:
			w.Header()["Www-Authenticate"] = a.missing
			a.responder.Respond(w, r, errMissing)
		case Invalid:
			w.Header()["Www-Authenticate"] = a.invalid
			a.responder.Respond(w, r, errInvalid)
		default:
			w.Header()["Retry-After"] = a.retryAfter
			a.responder.Respond(w, r, errUnavailable.Wrap(id.cause))
		}
	})
}

// Protect is Identify and Require in one.
func (a *Authenticator[P]) Protect(next http.Handler) http.Handler {
	return a.Identify(a.Require(next))
}
