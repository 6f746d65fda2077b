package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/service"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysRotateCmd struct {
	ID        string         `arg:"" help:"ID of the key to replace, as in petstore keys list."`
	Overlap   time.Duration  `default:"24h" placeholder:"DURATION" help:"The old key stays valid for this long, at most until it expires (default ${default})."`
	ExpiresIn *time.Duration `placeholder:"DURATION" help:"The new key is valid for this long from now; 0 means that it does not expire. Without it the new key has the lifetime of the old one."`
	databaseFlags
}

// Help is shown by --help.
func (keysRotateCmd) Help() string {
	return `The new key has the name, owner, plan, quotas and limits of the old one. Only
the new key goes to standard output. The key is shown only now.`
}

func (c keysRotateCmd) Run(ctx context.Context, o output) error {
	switch {
	case c.Overlap < 0:
		return usageError{fmt.Errorf("keys rotate: --overlap must not be negative, got %v", c.Overlap)}
	case c.ExpiresIn != nil && *c.ExpiresIn < 0:
		return usageError{fmt.Errorf("keys rotate: --expires-in must not be negative, got %v", *c.ExpiresIn)}
	}
	settings, err := c.load()
	if err != nil {
		return err
	}
	return withDatabase(ctx, settings, false, func(db store.Store) error {
		old, err := db.Key(ctx, c.ID)
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
		key, err := db.RotateKey(ctx, c.ID, r, actor())
		if err != nil {
			return explainKey(c.ID, err)
		}
		if err := o.showKey(key, secret); err != nil {
			return err
		}
		o.say("The old key %s %s.", old.ID, endText(r.OldExpires(old.Expires)))
		return nil
	})
}

// expires returns when the new key expires. Its lifetime is that of the old one unless
// --expires-in is given.
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
