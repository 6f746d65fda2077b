package apikey

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Principal is the key of a request, with its owner and plan. A service that needs more,
// such as scopes, embeds it in a struct of its own, which then is the principal.
type Principal struct {
	KeyID string          // public name of the key, as in "key_4fQ8rT2kLm9XwZ1a"
	Owner string          // the owner that usage is counted for; its keys share one quota
	Plan  *ratelimit.Plan // what the owner may use

	// Limits are what the key alone may use, inside Plan; nil: no less than its owner.
	// A service that gives keys limits charges them in addition to the owner, by
	// ratelimit.Caller.Also, with a subject such as "key:" and the KeyID.
	Limits *ratelimit.Plan

	// Subject is the owner's subject for a rate limiter. If a store leaves it empty, a
	// [Verifier] sets it to [OwnerSubject] of the owner, once for each look-up.
	Subject string

	// Prefix is the prefix of the key's format, such as "pet_live_". A [Verifier] sets it.
	Prefix string
}

// OwnerSubject returns the subject that an owner's usage is counted for: "owner:" and
// the owner. No subject of a network is equal to it: those begin with "network:"
// (clientip.NetworkSubject).
func OwnerSubject(owner string) string { return "owner:" + owner }

// FromContext returns the Principal of the request that ctx belongs to, and false if there
// is none. It also finds one that the service's own principal embeds, so that packages
// that do not know that type can tell the key of a request. Handlers, which do, use
// [bearer.FromContext].
func FromContext(ctx context.Context) (Principal, bool) {
	if p, ok := bearer.FromContext[Principal](ctx); ok {
		return p, true
	}
	if h, ok := bearer.FromContext[holder](ctx); ok {
		return h.principal(), true
	}
	return Principal{}, false
}

// A holder is a Principal, or embeds one.
type holder interface{ principal() Principal }

func (p Principal) principal() Principal { return p }

// A completer is a principal in which a [Verifier] sets what it knows: a *Principal, or a
// pointer to a struct that embeds Principal.
type completer interface{ complete(prefix string) }

func (p *Principal) complete(prefix string) {
	p.Prefix = prefix
	if p.Subject == "" {
		p.Subject = OwnerSubject(p.Owner)
	}
}

// The reasons why a key is not valid. All of them wrap [bearer.ErrInvalid], as does the
// error for a malformed key. Clients do not see them.
var (
	ErrUnknown = fmt.Errorf("apikey: key is unknown: %w", bearer.ErrInvalid)
	ErrExpired = fmt.Errorf("apikey: key has expired: %w", bearer.ErrInvalid)
	ErrRevoked = fmt.Errorf("apikey: key is revoked: %w", bearer.ErrInvalid)

	errMalformed = fmt.Errorf("apikey: key is malformed: %w", bearer.ErrInvalid)
)

// A Store has the records of the keys that were issued, with principals of type P:
// [Principal], or a type of the service (see [NewVerifier]). It must be safe for concurrent
// use.
type Store[P any] interface {
	// Lookup returns the record of the key with this digest, whether it is valid or
	// not, or an error that wraps [ErrUnknown] if there is no such key. Any other
	// error means that the look-up failed. It should return when ctx ends. It is called for a
	// key in use as often as [Options.TTL] says, so that a store can note when it was last used.
	Lookup(ctx context.Context, d Digest) (Record[P], error)
}

// A Record is what a store holds for a key.
type Record[P any] struct {
	Principal P
	Expires   time.Time // the first instant at which the key is not valid; zero: never
	Revoked   time.Time // the instant of the revocation; zero: not revoked
}

// Valid returns nil if the key is valid at an instant, and [ErrRevoked] or
// [ErrExpired] otherwise.
func (r Record[P]) Valid(at time.Time) error {
	switch {
	case !r.Revoked.IsZero() && !at.Before(r.Revoked):
		return ErrRevoked
	case !r.Expires.IsZero() && !at.Before(r.Expires):
		return ErrExpired
	default:
		return nil
	}
}

// ExpireAfter returns the record of a key that a new key replaces. It stays valid for an
// overlap, in which clients change to the new key, but never longer than before. A negative
// overlap counts as 0.
func (r Record[P]) ExpireAfter(now time.Time, overlap time.Duration) Record[P] {
	end := now.Add(max(overlap, 0))
	if r.Expires.IsZero() || end.Before(r.Expires) {
		r.Expires = end
	}
	return r
}
