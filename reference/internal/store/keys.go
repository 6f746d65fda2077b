package store

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
)

// The types of keys come from package sqlkeys. The key itself is never stored.
type (
	Digest = apikey.Digest
	NewKey = sqlkeys.NewKey
	Key    = sqlkeys.Key
)

// A Rotation replaces a key by a new one with the same name, owner, plan, quotas and limits.
type Rotation struct {
	Digest   Digest        // of the new key
	LastFour string        // of the new key
	At       time.Time     // when the new key is created, as in NewKey.Created
	Overlap  time.Duration // how long the old key stays valid, unless it expires sooner; 0 or more
	Expires  time.Time     // of the new key, as in NewKey.Expires
}

// maxQuotas is the largest number of quotas, and of limits, of a key, and maxQuotaText the
// length of each.
const (
	maxQuotas    = 16
	maxQuotaText = 64
)

// CheckKey returns an error that wraps [ErrInvalid] if k breaks a rule of this service: its
// name, owner and plan are texts as NewPet.Name, and its times are as CheckTime has them.
// Package sqlkeys checks the rest. It does not check that the plan exists and the quotas can be
// parsed.
func CheckKey(k NewKey) error {
	err := cmp.Or(
		checkText("key name", k.Name), checkText("key owner", k.Owner), checkText("key plan", k.Plan),
		checkQuotas("quota", k.Quotas), checkQuotas("limit", k.Limits), checkTime("key creation time", k.Created))
	if err != nil || k.Expires.IsZero() {
		return err
	}
	return checkTime("key expiry", k.Expires)
}

func checkQuotas(what string, quotas []string) error {
	if len(quotas) > maxQuotas {
		return fmt.Errorf("%w: a key must have at most %d %ss, got %d", ErrInvalid, maxQuotas, what, len(quotas))
	}
	for _, quota := range quotas {
		if err := checkText("key "+what, quota); err != nil {
			return err
		}
		if len(quota) > maxQuotaText {
			return fmt.Errorf("%w: key %s must have at most %d bytes, got %d", ErrInvalid, what, maxQuotaText, len(quota))
		}
	}
	return nil
}

// A KeyFinder finds the key of a request, and notes that it is used.
type KeyFinder interface {
	// KeyByDigest returns the key with this digest, or [ErrNotFound]. Revoked and
	// expired keys are found too; the caller asks [sqlkeys.Key.Active].
	KeyByDigest(ctx context.Context, d Digest) (Key, error)

	// KeyUsed notes that a key was used at an instant, unless a later use is noted.
	KeyUsed(ctx context.Context, id string, at time.Time) error
}

// Keys stores the API keys. The methods that change a key also store an [AuditEntry] with
// the actor, both or neither. An actor that does not pass Validate is refused with
// [ErrInvalid].
type Keys interface {
	KeyFinder

	// CreateKey stores a key and gives it an ID. A key that does not pass [CheckKey] is
	// refused with [ErrInvalid], a digest that is stored already with [ErrExists].
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

	// RotateKey stores the new key and shortens the life of the old one to the overlap, both
	// or neither. The errors are [ErrNotFound], [ErrInactive] for a key that is not active at
	// r.At, [ErrInvalid] also for a negative overlap, and those of CreateKey.
	RotateKey(ctx context.Context, id string, r Rotation, by Actor) (Key, error)
}
