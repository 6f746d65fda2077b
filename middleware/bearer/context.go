package bearer

import "context"

// An Outcome says what [Authenticator.Identify] found out about a request.
type Outcome uint8

const (
	// Unidentified: the request has not passed Identify. It is the zero value.
	Unidentified Outcome = iota
	// Authenticated: the token is valid, and there is a principal.
	Authenticated
	// Missing: there is no bearer token: no Authorization field, or one of another
	// scheme.
	Missing
	// Invalid: the token is malformed, too long, or was found not valid.
	Invalid
	// Unavailable: the token could not be verified.
	Unavailable
	// Repeated: there is more than one Authorization line.
	Repeated
)

// String returns the outcome in lower case, as for a label in a metric.
func (o Outcome) String() string {
	switch o {
	case Unidentified:
		return "unidentified"
	case Authenticated:
		return "authenticated"
	case Missing:
		return "missing"
	case Invalid:
		return "invalid"
	case Unavailable:
		return "unavailable"
	case Repeated:
		return "repeated"
	default:
		return "unknown"
	}
}

// FromContext returns the principal of the request that ctx belongs to. It
// reports false if no [Authenticator] for principals of type P has found one; P
// is exactly the type that its [VerifyFunc] returns.
func FromContext[P any](ctx context.Context) (P, bool) {
	if id, ok := ctx.Value(principalKey[P]{}).(*identity[P]); ok && id.outcome == Authenticated {
		return id.principal, true
	}
	var none P
	return none, false
}

// OutcomeFrom returns what the innermost [Authenticator] around ctx found out,
// whatever the type of its principals. It is [Unidentified] for a request that
// has not passed any.
func OutcomeFrom(ctx context.Context) Outcome {
	if outcome, ok := ctx.Value(outcomeKey{}).(*Outcome); ok {
		return *outcome
	}
	return Unidentified
}

type (
	outcomeKey          struct{}
	principalKey[P any] struct{}
)

// identity is the context of a request with what was found out about it: one
// allocation for everything.
type identity[P any] struct {
	context.Context
	outcome   Outcome
	principal P     // if Authenticated
	reason    error // why there is no principal; nil if Authenticated or Missing
	by        *Authenticator[P]
}

func (id *identity[P]) Value(key any) any {
	switch key.(type) {
	case principalKey[P]:
		return id
	case outcomeKey:
		return &id.outcome
	}
	return id.Context.Value(key)
}
