package store

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Digest is the SHA-256 of a whole API key. The key itself is never stored.
type Digest = apikey.Digest

// A NewKey is an API key that has not been stored yet.
type NewKey struct {
	Digest   Digest
	LastFour string    // the last four characters of the key, for people to tell keys apart
	Name     string    // what the key is for; text as in NewPet.Name
	Owner    string    // whom its usage is counted for; text as in NewPet.Name
	Plan     string    // the name of a plan; text as in NewPet.Name
	Quotas   []string  // the key's own quotas, such as "5000/minute", where the plan leaves them to the key
	Created  time.Time // not zero
	Expires  time.Time // the first instant at which the key is not valid, after Created; zero: never
}

// maxQuotas bounds what one key brings along, and maxQuotaText each of it.
const (
	maxQuotas    = 16
	maxQuotaText = 64
)

// Validate reports what is wrong with k. Its errors wrap [ErrInvalid]. It does
// not judge whether the plan exists and the quotas can be read.
func (k NewKey) Validate() error {
	for _, text := range []struct{ what, value string }{
		{"key name", k.Name}, {"key owner", k.Owner}, {"key plan", k.Plan},
	} {
		if err := checkText(text.what, text.value); err != nil {
			return err
		}
	}
	if len(k.Quotas) > maxQuotas {
		return fmt.Errorf("%w: %d key quotas, at most %d are kept", ErrInvalid, len(k.Quotas), maxQuotas)
	}
	for _, quota := range k.Quotas {
		if err := checkText("key quota", quota); err != nil {
			return err
		}
		if len(quota) > maxQuotaText {
			return fmt.Errorf("%w: key quota is longer than %d bytes", ErrInvalid, maxQuotaText)
		}
	}
	if err := checkLastFour(k.LastFour); err != nil {
		return err
	}
	switch {
	case k.Digest == Digest{}:
		return fmt.Errorf("%w: key digest is missing", ErrInvalid)
	case k.Created.IsZero():
		return fmt.Errorf("%w: key creation time is missing", ErrInvalid)
	case !k.Expires.IsZero() && !k.Expires.After(k.Created):
		return fmt.Errorf("%w: key expires before it is created", ErrInvalid)
	}
	return nil
}

func checkLastFour(text string) error {
	if err := checkText("key's last four characters", text); err != nil {
		return err
	}
	if len(text) != 4 {
		return fmt.Errorf("%w: key's last four characters are %d bytes", ErrInvalid, len(text))
	}
	return nil
}

// A Key is a stored API key.
type Key struct {
	ID       string // public; as [apikey.NewKeyID] makes it
	Digest   Digest
	LastFour string
	Name     string
	Owner    string
	Plan     string
	Quotas   []string // nil where the key has none of its own
	Created  time.Time
	Expires  time.Time // zero: never
	Revoked  time.Time // the first instant at which the key is not valid; zero: not revoked
}

// Active reports whether the key is valid at an instant: neither expired nor
// revoked.
func (k Key) Active(at time.Time) bool { return k.Record(nil).Valid(at) == nil }

// Record returns what [apikey.Verifier] wants to know of the key. The plan is
// the one that is named in k, with k's own quotas where it leaves them to the
// key.
func (k Key) Record(plan *ratelimit.Plan) apikey.Record {
	return apikey.Record{
		Principal: apikey.Principal{KeyID: k.ID, Owner: k.Owner, Plan: plan},
		Expires:   k.Expires,
		Revoked:   k.Revoked,
	}
}

// A Rotation replaces a key by a new one with the same name, owner, plan and
// quotas.
type Rotation struct {
	Digest   Digest        // of the new key
	LastFour string        // of the new key
	At       time.Time     // when the new key is created; not zero
	Overlap  time.Duration // how long the old key stays valid, unless it ends sooner; not negative
	Expires  time.Time     // of the new key, after At; zero: never
}

// Validate reports what is wrong with r. Its errors wrap [ErrInvalid].
func (r Rotation) Validate() error {
	if r.Overlap < 0 {
		return fmt.Errorf("%w: rotation overlap %v is negative", ErrInvalid, r.Overlap)
	}
	// The old key, which passed the same rules, gives the rest.
	return NewKey{
		Digest: r.Digest, LastFour: r.LastFour, Name: "-", Owner: "-", Plan: "-",
		Created: r.At, Expires: r.Expires,
	}.Validate()
}

// OldExpires returns when a key that expires at the given instant (zero: never)
// expires after the rotation: at the end of the overlap, but never later than
// it would have.
func (r Rotation) OldExpires(expires time.Time) time.Time {
	return apikey.Record{Expires: expires}.ExpireAfter(r.At, r.Overlap).Expires
}

// A KeyFinder finds the key that a request came with.
type KeyFinder interface {
	// KeyByDigest returns the key with this digest, or [ErrNotFound]. Revoked and
	// expired keys are found too; the caller asks [Key.Active].
	KeyByDigest(ctx context.Context, d Digest) (Key, error)
}

// Keys keeps the API keys.
type Keys interface {
	KeyFinder

	// CreateKey stores a key and gives it an ID. A key that does not pass
	// Validate is refused with [ErrInvalid], a digest that is stored already with
	// [ErrExists].
	CreateKey(ctx context.Context, k NewKey) (Key, error)

	// CreateFirstKey does the same if no key was ever stored, and is refused with
	// [ErrExists] otherwise. Of several that run at once, one succeeds.
	CreateFirstKey(ctx context.Context, k NewKey) (Key, error)

	// ListKeys returns all keys, also those that are no longer active, in order
	// of their creation and, within one instant, of their IDs.
	ListKeys(ctx context.Context) ([]Key, error)

	// RevokeKey ends a key at an instant and returns it, or [ErrNotFound]. A key
	// that is revoked already stays revoked from when it was.
	RevokeKey(ctx context.Context, id string, at time.Time) (Key, error)

	// RotateKey stores the new key and shortens the life of the old one to
	// [Rotation.OldExpires], both or neither. The errors are [ErrNotFound],
	// [ErrInactive] for a key that is not active at r.At, and those of CreateKey.
	RotateKey(ctx context.Context, id string, r Rotation) (Key, error)
}
