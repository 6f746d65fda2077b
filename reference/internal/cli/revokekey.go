package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysRevokeCmd struct {
	ID string `arg:"" help:"ID of the key, as in petstore keys list."`
	databaseFlags
}

func (c keysRevokeCmd) Run(ctx context.Context, o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	return withDatabase(ctx, settings, false, func(db store.Store) error {
		now := time.Now()
		key, err := db.RevokeKey(ctx, c.ID, now, actor())
		if err != nil {
			return explainKey(c.ID, err)
		}
		if key.Revoked.Before(now.Truncate(time.Microsecond)) {
			o.say("Key %s of %q was already revoked at %s.", key.ID, key.Owner, showTime(key.Revoked))
			return nil
		}
		o.say("Key %s of %q is revoked. Running servers refuse it within one second.", key.ID, key.Owner)
		return nil
	})
}

// explainKey returns the error about a key named by its ID.
func explainKey(id string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("there is no key with the ID %q; petstore keys list shows the IDs", id)
	case errors.Is(err, store.ErrInactive):
		return fmt.Errorf("cannot rotate key %s: it is revoked or expired; create another one with petstore keys create", id)
	default:
		return err
	}
}
