package apikey

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/ratelimit"
)

// The reasons for which a key is not valid. All of them wrap [bearer.ErrInvalid].
// They are for the service itself: clients do not see them.
var (
	ErrMalformed = fmt.Errorf("apikey: key is malformed: %w", bearer.ErrInvalid)
	ErrUnknown   = fmt.Errorf("apikey: key is unknown: %w", bearer.ErrInvalid)
	ErrExpired   = fmt.Errorf("apikey: key has expired: %w", bearer.ErrInvalid)
	ErrRevoked   = fmt.Errorf("apikey: key is revoked: %w", bearer.ErrInvalid)
)

// A Store knows the keys that were issued. It must be safe for concurrent use.
type Store interface {
	// Lookup returns the record of the key with this digest, whether it is valid or
	// not, or an error that wraps [ErrUnknown] if there is none. Any other error
	// means that it could not be told. It should return when ctx ends.
	Lookup(ctx context.Context, d Digest) (Record, error)
}

// A Principal is on whose behalf a request is made.
type Principal struct {
	KeyID string          // public name of the key, as in "key_4fQ8rT2kLm9XwZ1a"
	Owner string          // whom usage is counted for; all keys of an owner share one quota
	Plan  *ratelimit.Plan // what the owner may use

	// Subject is the owner's name to a limiter. A [Verifier] fills it in where a
	// store left it empty, with what [OwnerSubject] returns, so that it is made
	// once a look-up and not with every request.
	Subject string
}

// OwnerSubject returns the subject that an owner's usage is counted for. It begins
// with "owner:", so that no owner has the name of another kind of subject.
func OwnerSubject(owner string) string { return "owner:" + owner }

// A Record is what a store holds for a key.
type Record struct {
	Principal
	Expires time.Time // the first instant at which the key is not valid; zero: never
	Revoked time.Time // likewise, by decision; zero: not revoked
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

// ends reports whether there is an instant at which the key is not valid.
func (r *Record) ends() bool { return !r.Expires.IsZero() || !r.Revoked.IsZero() }

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
// digits, which have nothing to do with the key.
func NewKeyID() string {
	return string(appendRandom([]byte("key_"), 16))
}
