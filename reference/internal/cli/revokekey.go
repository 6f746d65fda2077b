package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysRevokeCmd struct {
	ID string `arg:"" help:"ID of the key, as in the list."`
	databaseFlags
}

func (c keysRevokeCmd) Run(ctx context.Context, o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	return withDatabase(ctx, settings, false, func(db store.Store) error {
		now := time.Now()
		key, err := db.RevokeKey(ctx, c.ID, now)
		if err != nil {
			return explainKey(c.ID, err)
		}
		if key.Revoked.Before(now.Truncate(time.Microsecond)) {
			o.say("Key %s of %q was revoked already, at %s.", key.ID, key.Owner, showTime(key.Revoked))
			return nil
		}
		o.say("Key %s of %q is revoked. Running servers refuse it within a second.", key.ID, key.Owner)
		return nil
	})
}

// explainKey says what is wrong with a key that was named by its ID.
func explainKey(id string, err error) error {
	switch {
	case errors.Is(err, store.ErrNotFound):
		return fmt.Errorf("there is no key %q; petstore keys list shows the IDs, such as key_4fQ8rT2kLm9XwZ1a", id)
	case errors.Is(err, store.ErrInactive):
		return fmt.Errorf("key %s is revoked or has expired, and cannot be rotated; make another with petstore keys create", id)
	default:
		return err
	}
}
