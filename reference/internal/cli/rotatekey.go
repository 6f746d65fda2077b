package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/service"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysRotateCmd struct {
	ID        string         `arg:"" help:"ID of the key to replace, as in the list."`
	Overlap   time.Duration  `default:"24h" placeholder:"DURATION" help:"How long the old key stays valid, at most until its own expiry (default ${default})."`
	ExpiresIn *time.Duration `placeholder:"DURATION" help:"How long the new key is valid from now; 0 means that it never expires. Without it the new key is valid for as long as the old one was when it was made."`
	databaseFlags
}

// Help is shown by --help.
func (keysRotateCmd) Help() string {
	return `The new key has the name, owner, plan and quotas of the old one. Only the
new key goes to standard output, and it is shown only now.`
}

func (c keysRotateCmd) Run(ctx context.Context, o output) error {
	switch {
	case c.Overlap < 0:
		return usageError{errors.New("keys rotate: --overlap: must not be negative")}
	case c.ExpiresIn != nil && *c.ExpiresIn < 0:
		return usageError{errors.New("keys rotate: --expires-in: a key must not expire before it is made")}
	}
	settings, err := c.load()
	if err != nil {
		return err
	}
	return withDatabase(ctx, settings, false, func(db store.Store) error {
		old, err := findKey(ctx, db, c.ID)
		if err != nil {
			return explainKey(c.ID, err)
		}
		secret, err := service.NewSecret()
		if err != nil {
			return err
		}
		now := time.Now()
		r := store.Rotation{
			Digest: secret.Digest(), LastFour: secret.LastFour(),
			At: now, Overlap: c.Overlap, Expires: c.expires(old, now),
		}
		key, err := db.RotateKey(ctx, c.ID, r)
		if err != nil {
			return explainKey(c.ID, err)
		}
		if err := o.showKey(key, secret); err != nil {
			return err
		}
		o.say("Key %s, which it replaces, %s.", old.ID, endText(r.OldExpires(old.Expires)))
		return nil
	})
}

// expires returns when the new key expires. A key that was made for a month is
// replaced by one for a month.
func (c keysRotateCmd) expires(old store.Key, now time.Time) time.Time {
	switch {
	case c.ExpiresIn != nil && *c.ExpiresIn > 0:
		return now.Add(*c.ExpiresIn)
	case c.ExpiresIn != nil || old.Expires.IsZero():
		return time.Time{}
	default:
		return now.Add(old.Expires.Sub(old.Created))
	}
}

func findKey(ctx context.Context, db store.Keys, id string) (store.Key, error) {
	keys, err := db.ListKeys(ctx)
	if err != nil {
		return store.Key{}, err
	}
	i := slices.IndexFunc(keys, func(k store.Key) bool { return k.ID == id })
	if i < 0 {
		return store.Key{}, fmt.Errorf("find key: %w", store.ErrNotFound)
	}
	return keys[i], nil
}
