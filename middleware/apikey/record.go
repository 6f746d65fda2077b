package apikey

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// The reasons why a key is not valid. All of them wrap [bearer.ErrInvalid]. Clients do
// not see them.
var (
	ErrMalformed = fmt.Errorf("apikey: key is malformed: %w", bearer.ErrInvalid)
	ErrUnknown   = fmt.Errorf("apikey: key is unknown: %w", bearer.ErrInvalid)
	ErrExpired   = fmt.Errorf("apikey: key has expired: %w", bearer.ErrInvalid)
	ErrRevoked   = fmt.Errorf("apikey: key is revoked: %w", bearer.ErrInvalid)
)

// A Store has the records of the keys that were issued. It must be safe for concurrent
// use.
type Store interface {
	// Lookup returns the record of the key with this digest, whether it is valid or
	// not, or an error that wraps [ErrUnknown] if there is no such key. Any other
	// error means that the look-up failed. It should return when ctx ends.
	Lookup(ctx context.Context, d Digest) (Record, error)
}

// A Principal is the key of a request, with its owner and plan.
type Principal struct {
	KeyID string          // public name of the key, as in "key_4fQ8rT2kLm9XwZ1a"
	Owner string          // the owner that usage is counted for; its keys share one quota
	Plan  *ratelimit.Plan // what the owner may use

	// Limits are what the key alone may use, inside of Plan; nil: no less than its owner.
	// A service that gives keys limits enforces them itself: ratelimit.New counts each
	// request for one subject.
	Limits *ratelimit.Plan

	// Subject is the owner's subject for a rate limiter. If a store leaves it empty, a
	// [Verifier] sets it to [OwnerSubject] of the owner, once for each look-up.
	Subject string

	// Prefix is the prefix of the key's format, such as "pet_live_". A [Verifier] sets it.
	Prefix string
}

// complete sets what a [Verifier] knows about the principal of a key.
func (p *Principal) complete(prefix string) {
	p.Prefix = prefix
	if p.Subject == "" {
		p.Subject = OwnerSubject(p.Owner)
	}
}

// OwnerSubject returns the subject that an owner's usage is counted for: "owner:" and
// the owner. No subject of a network is equal to it: those begin with "network:"
// (clientip.NetworkSubject).
func OwnerSubject(owner string) string { return "owner:" + owner }

// A Record is what a store holds for a key.
type Record struct {
	Principal
	Expires time.Time // the first instant at which the key is not valid; zero: never
	Revoked time.Time // the instant of the revocation; zero: not revoked
}

// Valid returns nil if the key is valid at an instant, and [ErrRevoked] or
// [ErrExpired] otherwise.
func (r Record) Valid(at time.Time) error {
	switch {
	case !r.Revoked.IsZero() && !at.Before(r.Revoked):
		return ErrRevoked
	case !r.Expires.IsZero() && !at.Before(r.Expires):
		return ErrExpired
	default:
		return nil
	}
}

// hasEnd reports whether the key expires or was revoked.
func (r *Record) hasEnd() bool { return !r.Expires.IsZero() || !r.Revoked.IsZero() }

// ExpireAfter returns the record of a key that a new key replaces: it stays valid for
// an overlap, in which clients change to the new key, but never longer than before.
// A negative overlap counts as 0.
func (r Record) ExpireAfter(now time.Time, overlap time.Duration) Record {
	end := now.Add(max(overlap, 0))
	if r.Expires.IsZero() || end.Before(r.Expires) {
		r.Expires = end
	}
	return r
}

// NewKeyID returns a public name for a new key: "key_" and 16 random letters and
// digits, which reveal nothing about the key.
func NewKeyID() string {
	return string(appendRandom([]byte("key_"), 16))
}
