package bearer

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/response"
)

// ErrInvalid is wrapped by the errors of a verify function that mean that a token
// is not valid.
var ErrInvalid = errors.New("bearer: token not valid")

// Options are optional settings of [New]. The zero value works.
type Options struct {
	// Observe, if set, is called by Identify with each request without a principal.
	// The reason is nil if the outcome is Missing, the error of the verify function if
	// it was called, and otherwise what is wrong with the field. Observe runs in the
	// goroutine of the request before next is called, and must be safe for concurrent
	// use.
	Observe func(r *http.Request, o Outcome, reason error)

	// TokenName is what the texts of responses call the token, such as "access
	// token": printable ASCII without quotation marks and backslashes (RFC 6750
	// section 3). If empty, it is "API key".
	TokenName string

	// ResourceMetadata is the address of the metadata that says where to get a token (RFC 9728).
	// Every challenge names it. It is an https URL, or http on loopback; the service serves it.
	ResourceMetadata string

	// Errors writes the responses of Require. Nil works.
	Errors *apierror.Responder
}

// An Authenticator finds the principal, of type P, of a request, and refuses requests
// without one. [New] makes it. It never changes, and is safe for concurrent use.
//
// It reads the Authorization field strictly: the scheme in any case, one or more spaces, one
// token of at most 16,384 bytes, and nothing else. A token has letters, digits and -._~+/
// only, with = at its end (b64token of RFC 6750 section 2.1): one with a colon is not valid. A
// second Authorization line is refused even if it is equal to the first. Tokens elsewhere,
// such as in X-API-Key, the query or a cookie, are ignored, and the body is not read.
//
// No response or log contains any part of a token. A 401 does not say why a token is
// not valid; [Options.Observe] gets the reason. A token that is refused only for its
// length is also logged.
type Authenticator[P any] struct {
	opts   Options
	verify func(ctx context.Context, token string) (P, error)

	refused [Refused + 1]refusal // by outcome
}

// A refusal is the answer to a request, with WWW-Authenticate. The field's values are shared by
// all responses, and have the capacity 1, so that appending to them makes a copy.
type refusal struct {
	challenge []string
	err       *apierror.Error
}

var errNotIdentified = errors.New("bearer: Require must be placed inside Identify of the same Authenticator")

// New returns an Authenticator. The realm is the name of what the tokens give access
// to, and is sent in challenges. It must be printable ASCII without quotation marks and
// backslashes, and not empty.
//
// verify returns the principal that a token belongs to. If the error wraps [ErrInvalid], the
// token is not valid and the response is 401, as for an [apierror.Error] with that status. Any
// other apierror.Error in the error is the response, such as a 429 with RetryAfter; a 403 with the
// code insufficient_scope also gets a challenge. Any other error means that the token could not be
// verified, and the response is 503. The context is that of the request. The token has the right
// form and at most 16,384 bytes. verify must be safe for concurrent use. Its errors may be logged
// and must not contain the token.
func New[P any](realm string, verify func(ctx context.Context, token string) (P, error), opts Options) (*Authenticator[P], error) {
	if err := checkText(realm); err != nil {
		return nil, fmt.Errorf("bearer: the realm %w", err)
	}
	if verify == nil {
		return nil, errors.New("bearer: the verify function must not be nil")
	}
	opts.TokenName = cmp.Or(opts.TokenName, "API key")
	if err := checkText(opts.TokenName); err != nil {
		return nil, fmt.Errorf("bearer: Options.TokenName %w", err)
	}
	if err := checkMetadata(opts.ResourceMetadata); err != nil {
		return nil, fmt.Errorf("bearer: Options.ResourceMetadata %w", err)
	}
	a := &Authenticator[P]{opts: opts, verify: verify}
	a.refusals(realm, opts.TokenName)
	return a, nil
}

// refusals sets the answers to requests without a principal. Realm and name have passed
// checkText and need no escapes, which many clients cannot read. The challenge to a request
// without a token names no error (RFC 6750 section 3.1).
func (a *Authenticator[P]) refusals(realm, name string) {
	metadata := ""
	if a.opts.ResourceMetadata != "" {
		metadata = `, resource_metadata="` + a.opts.ResourceMetadata + `"` // RFC 9728 section 5.1
	}
	challenge := func(rest string) []string { return []string{`Bearer realm="` + realm + `"` + rest + metadata} }
	a.refused[Missing] = refusal{challenge(""), apierror.New(http.StatusUnauthorized, "missing_api_key",
		"No "+name+" was sent. Send it as Authorization: Bearer <"+name+">.").Preencoded()}
	a.refused[Invalid] = refusal{challenge(`, error="invalid_token", error_description="The ` + name + ` is not valid"`),
		apierror.New(http.StatusUnauthorized, "invalid_api_key", "The "+name+" is not valid.").Preencoded()}
	a.refused[Repeated] = refusal{challenge(`, error="invalid_request", error_description="More than one Authorization header was sent"`),
		apierror.New(http.StatusBadRequest, "invalid_request", "The request has more than one Authorization header. Send exactly one.").Preencoded()}
	a.refused[Refused].challenge = challenge(`, error="insufficient_scope"`)
	a.refused[Unavailable].err = &apierror.Error{Status: http.StatusServiceUnavailable, Code: "unavailable", RetryAfter: 5 * time.Second,
		Message: "The " + name + " cannot be checked at the moment. Wait as long as Retry-After says."}
}

// Identify returns a handler that finds the principal of a request and calls next,
// whatever the outcome. It refuses no request. [OutcomeFrom] and [FromContext] return
// what it found.
func (a *Authenticator[P]) Identify(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		id := &identity[P]{call: call{Context: r.Context(), r: r}, by: a}
		a.identify(id, r.Header["Authorization"])
		response.ServeCopy(next, w, r, r.WithContext(id))
	})
}

// IdentifyCall is Identify for interceptors, such as gatehousegrpc and
// gatehouseconnect. The lines are the values of the call's Authorization field. It returns
// ctx with the principal, or why there is none. request returns the call as a request with
// the context ctx. Only Options.Observe and the guesses of an apikey.Verifier need it.
func (a *Authenticator[P]) IdentifyCall(ctx context.Context, lines []string, request func() *http.Request) context.Context {
	id := &identity[P]{call: call{Context: ctx, request: request}, by: a}
	a.identify(id, lines)
	return id
}

func (a *Authenticator[P]) identify(id *identity[P], lines []string) {
	token, outcome, reason := credentials(lines)
	if outcome == Authenticated {
		if id.principal, reason = a.verify(&id.call, token); reason != nil {
			outcome = Unavailable
			switch public, _ := errors.AsType[*apierror.Error](reason); {
			case errors.Is(reason, ErrInvalid), public != nil && public.Status == http.StatusUnauthorized:
				outcome = Invalid
			case public != nil && public.Status < http.StatusInternalServerError:
				outcome = Refused
			}
		}
	}
	id.outcome, id.reason = outcome, reason
	if a.opts.Observe != nil && outcome != Authenticated {
		a.opts.Observe(id.call.Value(response.RequestKey{}).(*http.Request), outcome, reason)
	}
}

// call is the context of the verify function. The rest of an identity changes while a look-up
// that outlives its request may still read its context.
type call struct {
	context.Context
	r       *http.Request
	request func() *http.Request // returns r if that is nil; for HTTP it would be an allocation
}

func (c *call) Value(key any) any {
	if _, ok := key.(response.RequestKey); !ok {
		return c.Context.Value(key)
	}
	if c.r == nil && c.request != nil {
		return c.request()
	}
	return c.r
}

// Require returns a handler that calls next for requests with a principal, and refuses all
// others. A request without a valid token is answered with 401 and a challenge, and one with
// more than one Authorization line with 400 and a challenge. If the token could not be
// verified, the answer is 503 with Retry-After, unless the verify function names another.
//
// Place it inside Identify of the same Authenticator. Otherwise it answers every
// request with 500 and logs why. What other Authenticators have found does not count,
// wherever they are.
func (a *Authenticator[P]) Require(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		challenge, err := a.refusal(r.Context())
		if err == nil {
			next.ServeHTTP(w, r)
			return
		}
		if challenge != nil {
			w.Header()["Www-Authenticate"] = challenge
		}
		a.opts.Errors.Respond(w, r, err)
	})
}

// refusal returns the error that a request without a principal is answered with, and
// the challenge of that answer, if it has one.
func (a *Authenticator[P]) refusal(ctx context.Context) (challenge []string, err error) {
	id, ok := ctx.Value(a).(*identity[P])
	if !ok {
		return nil, errNotIdentified
	}
	refused := &a.refused[id.outcome]
	switch id.outcome {
	case Authenticated:
		return nil, nil
	case Unavailable, Refused:
		switch public, _ := errors.AsType[*apierror.Error](id.reason); {
		case public == nil:
			return nil, refused.err.Wrap(id.reason)
		case id.outcome == Refused && public.Status == http.StatusForbidden && public.Code == "insufficient_scope":
			return refused.challenge, public // RFC 6750 section 3.1
		case id.outcome == Refused:
			return nil, public // what verify wrapped it in is not logged: it may be one of a flood
		}
		return nil, id.reason
	}
	if errors.Is(id.reason, errTooLong) { // logged, since the token may be good
		return refused.challenge, refused.err.Wrap(id.reason)
	}
	return refused.challenge, refused.err
}

// Protect is Identify and Require in one.
func (a *Authenticator[P]) Protect(next http.Handler) http.Handler {
	return a.Identify(a.Require(next))
}

// RequireCall is Require for a call: it returns nil if IdentifyCall or Identify of the
// same Authenticator has found a principal in ctx. Otherwise it returns the error to
// answer with, translated, and its header fields, and logs what Require logs. request
// returns the call as a request with the context ctx. Only a refusal needs it.
func (a *Authenticator[P]) RequireCall(ctx context.Context, request func() *http.Request) (http.Header, *apierror.Error) {
	challenge, err := a.refusal(ctx)
	if err == nil {
		return nil, nil
	}
	fields := make(http.Header, 1)
	if challenge != nil {
		fields["Www-Authenticate"] = challenge
	}
	public := a.opts.Errors.Public(request(), err)
	if public.RetryAfter > 0 {
		fields["Retry-After"] = []string{strconv.FormatInt(int64((public.RetryAfter-1)/time.Second+1), 10)}
	}
	return fields, public
}
