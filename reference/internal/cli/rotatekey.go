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
	Overlap   time.Duration  `default:"24h" placeholder:"DURATION" help:"How long the old key goes on, but no longer than it would have (default ${default})."`
	ExpiresIn *time.Duration `placeholder:"DURATION" help:"When the new key ends, counted from now; 0 for never. If it is not given, the new key lives as long as the old one was meant to."`
	databaseFlags
}

// Help is shown by --help.
func (keysRotateCmd) Help() string {
	return `The new key has the name, owner, plan and quotas of the old one. It goes to standard
output and nothing else does, and is shown only now.`
}

func (c keysRotateCmd) Run(ctx context.Context, o output) error {
	switch {
	case c.Overlap < 0:
		return usageError{errors.New("keys rotate: --overlap: is negative")}
	case c.ExpiresIn != nil && *c.ExpiresIn < 0:
		return usageError{errors.New("keys rotate: --expires-in: a key cannot have ended before it was made")}
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

// expires returns when the new key ends. A key that was meant to live for a month
// is followed by one that does.
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
