package apikey

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/bearer"
)

// The reasons why a key is not valid. All of them wrap [bearer.ErrInvalid]. Clients do
// not see them.
var (
	ErrMalformed = fmt.Errorf("apikey: key is malformed: %w", bearer.ErrInvalid)
	ErrUnknown   = fmt.Errorf("apikey: key is unknown: %w", bearer.ErrInvalid)
	ErrExpired   = fmt.Errorf("apikey: key has expired: %w", bearer.ErrInvalid)
	ErrRevoked   = fmt.Errorf("apikey: key is revoked: %w", bearer.ErrInvalid)
)

// A Store is a [StoreOf] with principals of type [Principal].
type Store = StoreOf[Principal]

// A StoreOf has the records of the keys that were issued, with principals of type P. It
// must be safe for concurrent use.
type StoreOf[P any] interface {
	// Lookup returns the record of the key with this digest, whether it is valid or
	// not, or an error that wraps [ErrUnknown] if there is no such key. Any other
	// error means that the look-up failed. It should return when ctx ends.
	Lookup(ctx context.Context, d Digest) (RecordOf[P], error)
}

// A Record is a [RecordOf] with a principal of type [Principal].
type Record = RecordOf[Principal]

// A RecordOf is what a store holds for a key, with a principal of type P. See
// [NewVerifier] for the types that P can be.
type RecordOf[P any] struct {
	Principal P
	Expires   time.Time // the first instant at which the key is not valid; zero: never
	Revoked   time.Time // the instant of the revocation; zero: not revoked
}

// Valid returns nil if the key is valid at an instant, and [ErrRevoked] or
// [ErrExpired] otherwise.
func (r RecordOf[P]) Valid(at time.Time) error {
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
func (r *RecordOf[P]) hasEnd() bool { return !r.Expires.IsZero() || !r.Revoked.IsZero() }

// ExpireAfter returns the record of a key that a new key replaces: it stays valid for
// an overlap, in which clients change to the new key, but never longer than before.
// A negative overlap counts as 0.
func (r RecordOf[P]) ExpireAfter(now time.Time, overlap time.Duration) RecordOf[P] {
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
