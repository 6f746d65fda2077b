package ratelimit

// A Caller is the client that a request is counted for.
type Caller struct {
	// Subject is the name that usage is counted for; it must not be empty. Each kind
	// of caller needs a prefix of its own, such as "owner:" (apikey.OwnerSubject) and
	// "network:" (clientip.NetworkSubject), so that a name which a caller chose is
	// never the name of another.
	Subject string

	// Plan is what the subject may use; it must not be nil. [UnlimitedPlan] says that
	// there is no limit, and [SuspendedPlan] that nothing may be used.
	Plan *Plan

	// Kind says what the subject is, and decides only how a ban is answered.
	Kind Kind

	// Exempt says that the request is not limited: it is not counted and not
	// observed, its response has no X-RateLimit headers, and the other fields of the
	// Caller are ignored. Handlers further in may still refuse it.
	Exempt bool
}

// A Kind says what the subject of a [Caller] is. It decides the code and the text of the
// response during a ban.
type Kind uint8

const (
	KindClient  Kind = iota // any client: client_banned
	KindAPIKey              // the owner of an API key: api_key_banned
	KindNetwork             // the network of a client without an API key: client_banned, with a text that says so
)
