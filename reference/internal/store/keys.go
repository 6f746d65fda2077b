package store

import (
	"cmp"
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Digest is the SHA-256 of an API key. The key itself is never stored.
type Digest = apikey.Digest

// A NewKey is an API key that has not been stored yet.
type NewKey struct {
	Digest   Digest
	LastFour string    // the last four characters of the key, for people to tell keys apart
	Name     string    // what the key is for; text as in NewPet.Name
	Owner    string    // usage is counted per owner; text as in NewPet.Name
	Plan     string    // the name of a plan; text as in NewPet.Name
	Quotas   []string  // such as "5000/minute", for a custom plan; nil for any other
	Limits   []string  // quotas of the key alone, which it must fit in addition to its plan; nil: none
	Created  time.Time // not zero; a time as CheckTime has it
	Expires  time.Time // the first instant at which the key is not valid, after Created, and as CheckTime has it; zero: never
}

// maxQuotas is the largest number of quotas of a key, and maxQuotaText the length of
// each.
const (
	maxQuotas    = 16
	maxQuotaText = 64
)

// Validate returns an error that wraps [ErrInvalid] if k breaks a rule of its type. It
// does not check that the plan exists and the quotas can be parsed.
func (k NewKey) Validate() error {
	_, limits := k.LimitsPlan()
	if err := cmp.Or(
		checkText("key name", k.Name), checkText("key owner", k.Owner), checkText("key plan", k.Plan),
		checkQuotas(k.Quotas), limits, checkLastFour(k.LastFour), checkTime("key creation time", k.Created),
	); err != nil {
		return err
	}
	switch {
	case k.Digest == Digest{}:
		return fmt.Errorf("%w: key digest is missing", ErrInvalid)
	case k.Expires.IsZero():
		return nil
	case !k.Expires.After(k.Created):
		return fmt.Errorf("%w: key must expire after it is created", ErrInvalid)
	}
	return checkTime("key expiry", k.Expires)
}

func checkQuotas(quotas []string) error {
	if len(quotas) > maxQuotas {
		return fmt.Errorf("%w: a key must have at most %d quotas, got %d", ErrInvalid, maxQuotas, len(quotas))
	}
	for _, quota := range quotas {
		if err := checkText("key quota", quota); err != nil {
			return err
		}
		if len(quota) > maxQuotaText {
			return fmt.Errorf("%w: key quota must have at most %d bytes, got %d", ErrInvalid, maxQuotaText, len(quota))
		}
	}
	return nil
}

// LimitsPlan returns the limits as a plan, or nil if there are none. The plan never bans:
// only the plan of the owner does. An error wraps [ErrInvalid].
func (k NewKey) LimitsPlan() (*ratelimit.Plan, error) {
	if len(k.Limits) == 0 {
		return nil, nil
	}
	if len(k.Limits) > plan.MaxQuotas {
		return nil, fmt.Errorf("%w: a key must have at most %d limits, got %d", ErrInvalid, plan.MaxQuotas, len(k.Limits))
	}
	quotas := make([]ratelimit.Quota, len(k.Limits))
	for i, text := range k.Limits {
		if len(text) > maxQuotaText {
			return nil, fmt.Errorf("%w: key limit must have at most %d bytes, got %d", ErrInvalid, maxQuotaText, len(text))
		}
		if err := quotas[i].UnmarshalText([]byte(text)); err != nil {
			return nil, fmt.Errorf("%w: key limit: %s", ErrInvalid, strings.TrimPrefix(err.Error(), "ratelimit: "))
		}
	}
	plan, err := ratelimit.NewPlan("key", ratelimit.Penalty{}, quotas...)
	if err != nil {
		return nil, fmt.Errorf("%w: key limits: %s", ErrInvalid, strings.TrimPrefix(err.Error(), "ratelimit: "))
	}
	return plan.WithScope("API key"), nil
}

// checkLastFour does not repeat the text in its error, since it is a part of a key.
func checkLastFour(text string) error {
	if len(text) != 4 || strings.ContainsFunc(text, func(r rune) bool { return r < ' ' || r > '~' }) {
		return fmt.Errorf("%w: key's last four characters must be 4 characters of ASCII, got %d bytes", ErrInvalid, len(text))
	}
	return nil
}

// A Key is a stored API key. Expires may have changed since it was created.
type Key struct {
	ID string // public; [apikey.NewKeyID] returns it
	NewKey
	Revoked time.Time // the first instant at which the key is not valid; zero: not revoked
}

// WithID returns the key as a store gives it back: with a new ID, and with times in
// microseconds of UTC.
func (k NewKey) WithID() Key {
	k.Created = k.Created.UTC().Truncate(time.Microsecond)
	if !k.Expires.IsZero() {
		k.Expires = k.Expires.UTC().Truncate(time.Microsecond)
	}
	k.Quotas, k.Limits = append([]string(nil), k.Quotas...), append([]string(nil), k.Limits...)
	return Key{ID: apikey.NewKeyID(), NewKey: k}
}

// Active reports whether the key is valid at an instant: neither expired nor
// revoked.
func (k Key) Active(at time.Time) bool { return k.Record(nil).Valid(at) == nil }

// Record returns the record of the key for [apikey.Verifier]. The plan is the one that
// k.Plan names, with the quotas of k if it is custom.
func (k Key) Record(plan *ratelimit.Plan) apikey.Record[apikey.Principal] {
	return apikey.Record[apikey.Principal]{
		Principal: apikey.Principal{KeyID: k.ID, Owner: k.Owner, Plan: plan},
		Expires:   k.Expires,
		Revoked:   k.Revoked,
	}
}

// A Rotation replaces a key by a new one with the same name, owner, plan, quotas and
// limits.
type Rotation struct {
	Digest   Digest        // of the new key
	LastFour string        // of the new key
	At       time.Time     // when the new key is created; not zero
	Overlap  time.Duration // how long the old key stays valid, unless it expires sooner; not negative
	Expires  time.Time     // of the new key, after At; zero: never
}

// Validate returns an error that wraps [ErrInvalid] if r breaks a rule of its type.
func (r Rotation) Validate() error {
	if r.Overlap < 0 {
		return fmt.Errorf("%w: rotation overlap must not be negative, got %v", ErrInvalid, r.Overlap)
	}
	// The rest is that of the old key, which is valid.
	return NewKey{
		Digest: r.Digest, LastFour: r.LastFour, Name: "-", Owner: "-", Plan: "-",
		Created: r.At, Expires: r.Expires,
	}.Validate()
}

// Next returns the key that replaces a key, as a store gives it back.
func (r Rotation) Next(old Key) Key {
	next := old.NewKey
	next.Digest, next.LastFour, next.Created, next.Expires = r.Digest, r.LastFour, r.At, r.Expires
	return next.WithID()
}

// OldExpires returns when a key that expires at the given instant (zero: never) expires
// after the rotation: at the end of the overlap, but not later than before.
func (r Rotation) OldExpires(expires time.Time) time.Time {
	return apikey.Record[apikey.Principal]{Expires: expires}.ExpireAfter(r.At, r.Overlap).Expires
}

// A KeyFinder finds the key of a request.
type KeyFinder interface {
	// KeyByDigest returns the key with this digest, or [ErrNotFound]. Revoked and
	// expired keys are found too; the caller asks [Key.Active].
	KeyByDigest(ctx context.Context, d Digest) (Key, error)
}

// Keys stores the API keys. The methods that change a key also store an [AuditEntry] with
// the actor, both or neither. An actor that does not pass Validate is refused with
// [ErrInvalid].
type Keys interface {
	KeyFinder

	// CreateKey stores a key and gives it an ID. A key that does not pass
	// Validate is refused with [ErrInvalid], a digest that is stored already with
	// [ErrExists].
	CreateKey(ctx context.Context, k NewKey, by Actor) (Key, error)

	// CreateFirstKey does the same if no key was ever stored, and returns [ErrExists]
	// otherwise. Of several concurrent calls, one succeeds.
	CreateFirstKey(ctx context.Context, k NewKey, by Actor) (Key, error)

	// Key returns the key with this ID, active or not, or [ErrNotFound].
	Key(ctx context.Context, id string) (Key, error)

	// ListKeys returns all keys, active or not, in order of their creation and, within
	// one instant, of their IDs.
	ListKeys(ctx context.Context) ([]Key, error)

	// RevokeKey revokes a key at an instant and returns it, or [ErrNotFound]. A key
	// that is already revoked keeps its instant, and gets no audit entry.
	RevokeKey(ctx context.Context, id string, at time.Time, by Actor) (Key, error)

	// RotateKey stores the new key and shortens the life of the old one to
	// [Rotation.OldExpires], both or neither. The errors are [ErrNotFound],
	// [ErrInactive] for a key that is not active at r.At, and those of CreateKey.
	RotateKey(ctx context.Context, id string, r Rotation, by Actor) (Key, error)
}
