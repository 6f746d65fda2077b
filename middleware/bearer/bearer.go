package bearer

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/response"
)

// ErrInvalid is wrapped by the errors of a [VerifyFunc] that mean that a token is not
// valid.
var ErrInvalid = errors.New("bearer: token not valid")

// A VerifyFunc returns the principal that a token belongs to. If the error wraps
// [ErrInvalid], the token is not valid and the response is 401. Any other error means
// that the token could not be verified, and the response is 503. The context is that
// of the request. The token has the right form and at most [Options.MaxToken] bytes.
// A VerifyFunc must be safe for concurrent use. Its errors may be logged and must not
// contain the token.
type VerifyFunc[P any] func(ctx context.Context, token string) (P, error)

// An Authenticator finds the principal, of type P, of a request, and refuses requests
// without one. [New] makes it. It never changes, and is safe for concurrent use.
//
// It reads the Authorization field strictly: the scheme in any case, one or more
// spaces, one b64token (RFC 6750 section 2.1) of bounded length, and nothing else. A
// second Authorization line is refused even if it is equal to the first. Tokens in the
// query, in forms and in cookies are ignored, and the body is not read.
//
// No response or log contains any part of a token. A 401 does not say why a token is
// not valid; [Options.Observe] gets the reason. A token that is refused only for its
// length is also logged.
type Authenticator[P any] struct {
	verify    VerifyFunc[P]
	maxToken  int
	observe   func(r *http.Request, o Outcome, reason error)
	responder *apierror.Responder
	errors    tokenErrors
	// Values of WWW-Authenticate and Retry-After. They are shared by all responses, and
	// have the capacity 1, so that appending to one makes a copy.
	missing, invalid, repeated, retryAfter []string
}

var (
	errInvalidRequest = apierror.New(http.StatusBadRequest, apierror.CodeInvalidRequest,
		"The request has more than one Authorization header. Send exactly one.").Preencoded()
	errNotIdentified = errors.New("bearer: Require must be placed inside Identify of the same Authenticator")
)

// The header fields that answers have, in the canonical form of [http.Header].
const (
	fieldChallenge  = "Www-Authenticate"
	fieldRetryAfter = "Retry-After"
)

// New returns an Authenticator. The realm is the name of what the tokens give access
// to, and is sent in challenges. It must be printable ASCII without quotation marks and
// backslashes, and not empty.
func New[P any](realm string, verify VerifyFunc[P], opts Options) (*Authenticator[P], error) {
	if err := checkText(realm); err != nil {
		return nil, fmt.Errorf("bearer: the realm %w", err)
	}
	if verify == nil {
		return nil, errors.New("bearer: the verify function must not be nil")
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
		invalid:    []string{challenge(realm, "invalid_token", "The "+opts.TokenName+" is not valid")},
		repeated:   []string{challenge(realm, "invalid_request", repeatedDescription)},
		retryAfter: []string{seconds(opts.RetryAfter)},
	}, nil
}

// Identify returns a handler that finds the principal of a request and calls next,
// whatever the outcome. It refuses no request. [OutcomeFrom] and [FromContext] return
// what it found.
func (a *Authenticator[P]) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := a.identify(r.Context(), r.Header["Authorization"])
		if a.observe != nil && id.outcome != Authenticated {
			a.observe(r, id.outcome, id.reason)
		}
		response.ServeCopy(next, w, r, r.WithContext(id))
	})
}

func (a *Authenticator[P]) identify(ctx context.Context, authorization []string) *identity[P] {
	id := &identity[P]{Context: ctx, by: a}
	var token string
	token, id.outcome, id.reason = credentials(authorization, a.maxToken)
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
// Place it inside Identify of the same Authenticator. Otherwise it answers every
// request with 500 and logs why. What other Authenticators have found does not count,
// wherever they are.
func (a *Authenticator[P]) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		field, value, err := a.refusal(r.Context())
		if err == nil {
			next.ServeHTTP(w, r)
			return
		}
		if field != "" {
			w.Header()[field] = value
		}
		a.responder.Respond(w, r, err)
	})
}

// refusal returns the error that a request without a principal is answered with, and
// the header field of that answer, if it has one.
func (a *Authenticator[P]) refusal(ctx context.Context) (field string, value []string, err error) {
	id, ok := ctx.Value(a).(*identity[P])
	if !ok {
		return "", nil, errNotIdentified
	}
	switch id.outcome {
	case Authenticated:
		return "", nil, nil
	case Missing:
		return fieldChallenge, a.missing, a.errors.missing
	case Invalid:
		return fieldChallenge, a.invalid, a.errors.invalidFor(id.reason)
	case Repeated:
		return fieldChallenge, a.repeated, errInvalidRequest
	default:
		return fieldRetryAfter, a.retryAfter, a.errors.unavailable.Wrap(id.reason)
	}
}

// Protect is Identify and Require in one.
func (a *Authenticator[P]) Protect(next http.Handler) http.Handler {
	return a.Identify(a.Require(next))
}
