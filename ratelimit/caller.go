package ratelimit

// A Caller is the client that sent a request: the subject that it is counted for, and the
// plan of that subject.
type Caller struct {
	// Subject is the name that usage is counted for; it must not be empty. Each kind of caller
	// needs a prefix of its own, such as "owner:" (apikey.OwnerSubject) and "network:"
	// (clientip.NetworkSubject). So a name which a caller chose is never the name of another.
	Subject string

	// Plan is what the subject may use; it must not be nil. [UnlimitedPlan] says that
	// there is no limit, and [SuspendedPlan] that nothing may be used.
	Plan *Plan

	// Also are further charges of the request, such as to an organisation, to a network
	// and to everybody; see [TakeAll]. All are made, or none. The client gets one answer. Its
	// header fields show the limit that will refuse the client first, as Deciding of package
	// engine finds it. Their plans say whose limits they are: see [Plan.WithScope]. A
	// Cost of 0 means what the request costs. Charges in unlike units, such as requests and
	// tokens, are told apart by different costs. A further limit of the same caller needs a
	// subject of its own, such as "search:17": no subject may be named twice. Put subjects
	// that many requests share last, and give them plans without a penalty: a ban of
	// everybody denies all requests. They also limit a caller whose own plan is unlimited.
	//
	// If the request is given back, all its charges are. limit.Settlement.Settle changes the
	// charges whose Cost is 0, and the caller's own. A request with one or two further
	// charges costs one allocation more, with three or more it costs three.
	Also []Charge

	// Kind says what the subject is. It decides how a ban is answered. A ban of one of Also
	// is answered as one of the zero Kind.
	Kind Kind
} // With one word more, Go would no longer return a Caller and an error in registers.

// A Kind says what the subject of a [Caller] is. It decides the code and the text of the
// response during a ban. The zero Kind is any client, with client_banned; a service without
// API keys needs no other, also for networks: the text of KindNetwork speaks of API keys.
type Kind uint8

const (
	KindAPIKey  Kind = iota + 1 // the owner of an API key: api_key_banned
	KindNetwork                 // the network of a client without a valid API key: client_banned, with a text that says so
)
