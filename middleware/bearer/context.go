package bearer

import "context"

// An Outcome is what [Authenticator.Identify] found in a request.
type Outcome uint8

const (
	unidentified  Outcome = iota // the request has not passed Identify
	Authenticated                // the token is valid, and there is a principal
	Missing                      // no Authorization field, or one of another scheme
	Invalid                      // the token is malformed, too long or not valid
	Unavailable                  // the token could not be verified
	Repeated                     // there is more than one Authorization line
	Refused                      // the verify function gave an [apierror.Error] below 500, such as a 429
)

// String returns the outcome in lower case, for logs and metrics. The zero Outcome is
// "unidentified".
func (o Outcome) String() string {
	names := [...]string{"unidentified", "authenticated", "missing", "invalid", "unavailable", "repeated", "refused"}
	if int(o) < len(names) {
		return names[o]
	}
	return "unknown"
}

// FromContext returns the principal of the request that ctx belongs to, and false if no
// [Authenticator] for principals of type P has found one. If several have, it is the principal
// of the innermost. P must be the type that the verify function returns, or an interface that
// this type implements.
func FromContext[P any](ctx context.Context) (P, bool) {
	var none P
	if any(none) == nil { // P is an interface
		return implementing[P](ctx)
	}
	if id, ok := ctx.Value(principalKey[P]{}).(*identity[P]); ok {
		return id.principal, true
	}
	return none, false
}

// implementing returns the principal of the innermost [Authenticator] with one that
// implements the interface P.
func implementing[P any](ctx context.Context) (found P, ok bool) {
	ctx.Value(&search{func(principal any) bool {
		found, ok = principal.(P)
		return ok
	}})
	return found, ok
}

// OutcomeFrom returns the outcome of the innermost [Authenticator] that the request of
// ctx has passed, whatever the type of its principals, or 0 if it has passed
// none.
func OutcomeFrom(ctx context.Context) Outcome {
	if outcome, ok := ctx.Value(outcomeKey{}).(*Outcome); ok {
		return *outcome
	}
	return unidentified
}

type (
	outcomeKey          struct{}
	principalKey[P any] struct{}

	// A search is a key that each Authenticator gives its principal to, from the
	// innermost on, until one is taken.
	search struct{ take func(principal any) bool }
)

// identity is the context of a request with what Identify found: one allocation for
// everything.
type identity[P any] struct {
	call
	outcome   Outcome
	principal P     // if Authenticated
	reason    error // why there is no principal; nil if Authenticated or Missing
	by        *Authenticator[P]
}

func (id *identity[P]) Value(key any) any {
	switch key := key.(type) {
	case *Authenticator[P]: // its Require
		if key == id.by {
			return id
		}
	case principalKey[P]:
		if id.outcome == Authenticated {
			return id
		}
	case outcomeKey:
		return &id.outcome
	case *search:
		if id.outcome == Authenticated && key.take(id.principal) {
			return nil
		}
	}
	return id.Context.Value(key)
}
