package bearer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/response"
)

// ErrInvalid is wrapped by the errors with which a [VerifyFunc] says that a token
// is not valid.
var ErrInvalid = errors.New("bearer: token not valid")

// A VerifyFunc returns the principal that a token belongs to. An error that wraps
// [ErrInvalid] means that the token is not valid, which is answered with 401. Any
// other error means that the token could not be verified, which is answered with
// 503. It is called only with a token of the right form, at most
// [Options.MaxToken] bytes long, and with the request's context. It must be safe
// for concurrent use. Its errors may be logged and must not contain the token.
type VerifyFunc[P any] func(ctx context.Context, token string) (P, error)

// An Authenticator finds the principal of type P on whose behalf a request is
// made, and refuses requests that have none. [New] makes it. It never changes,
// and is safe for concurrent use.
type Authenticator[P any] struct {
	verify     VerifyFunc[P]
	maxToken   int
	observe    func(r *http.Request, o Outcome, reason error)
	responder  *apierror.Responder
	errors     tokenErrors
	missing    []string // WWW-Authenticate, with the capacity 1 since it is shared
	invalid    []string // likewise
	repeated   []string // likewise
	retryAfter []string // Retry-After, likewise
}

var (
	errInvalidRequest = apierror.New(http.StatusBadRequest, apierror.CodeInvalidRequest,
		"The request has more than one Authorization header. Send exactly one.").Preencoded()
	errNotIdentified = errors.New("bearer: Require is not inside Identify of the same Authenticator")
)

// New returns an Authenticator. The challenge names the realm, which is what the
// tokens give access to. It must not be empty, and must be printable ASCII
// without quotation marks and backslashes.
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
		observe:    opts.Observe,
		responder:  opts.Errors,
		errors:     newTokenErrors(opts.TokenName),
		missing:    []string{challenge(realm, "", "")},
		invalid:    []string{challenge(realm, "invalid_token", opts.Description)},
		repeated:   []string{challenge(realm, "invalid_request", repeatedDescription)},
		retryAfter: []string{seconds(opts.RetryAfter)},
	}, nil
}

// Identify returns a handler that finds the principal of a request and calls
// next, whatever the outcome: see [OutcomeFrom] and [FromContext]. It refuses
// no request.
func (a *Authenticator[P]) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := a.identify(r)
		if a.observe != nil && id.outcome != Authenticated {
			a.observe(r, id.outcome, id.reason)
		}
		response.ServeCopy(next, w, r, r.WithContext(id))
	})
}

func (a *Authenticator[P]) identify(r *http.Request) *identity[P] {
	id := &identity[P]{Context: r.Context(), by: a}
	var token string
	token, id.outcome, id.reason = credentials(r.Header["Authorization"], a.maxToken)
	if id.outcome != Authenticated {
		return id
	}
	principal, err := a.verify(id.Context, token)
	switch {
	case err == nil:
		id.principal = principal
	case errors.Is(err, ErrInvalid):
		id.outcome, id.reason = Invalid, err
	default:
		id.outcome, id.reason = Unavailable, err
	}
	return id
}

// Require returns a handler that calls next for requests with a principal, and
// answers all others: 401 with a challenge if there is no token or it is not
// valid, 400 with a challenge if there is more than one Authorization line, 503
// with Retry-After if the token could not be verified.
//
// It must be inside Identify of the same Authenticator. Otherwise it answers
// every request with 500 and logs why.
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
			a.responder.Respond(w, r, a.errors.missing)
		case Invalid:
			w.Header()["Www-Authenticate"] = a.invalid
			a.responder.Respond(w, r, a.errors.invalidFor(id.reason))
		case Repeated:
			w.Header()["Www-Authenticate"] = a.repeated
			a.responder.Respond(w, r, errInvalidRequest)
		default:
			w.Header()["Retry-After"] = a.retryAfter
			a.responder.Respond(w, r, a.errors.unavailable.Wrap(id.reason))
		}
	})
}

// Protect is Identify and Require in one.
func (a *Authenticator[P]) Protect(next http.Handler) http.Handler {
	return a.Identify(a.Require(next))
}
