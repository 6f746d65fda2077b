package cli

import "context"

type keysRevokeCmd struct {
	ID string `arg:"" help:"ID of the key, as in petstore keys list."`
	keyFlags
}

func (c keysRevokeCmd) Run(ctx context.Context, o output) error {
	settings, _, err := c.load()
	if err != nil {
		return err
	}
	return c.manage(ctx, settings, false, func(m keyManager) error {
		revoked, err := m.Revoke(ctx, c.ID)
		if err != nil {
			return err
		}
		key := revoked.Key
		if revoked.Already {
			o.say("Key %s of %q was already revoked at %s.", key.ID, key.Owner, showTime(*key.Revoked))
			return nil
		}
		o.say("Key %s of %q is revoked. Running servers refuse it within one second.", key.ID, key.Owner)
		return nil
	})
}
