package cli

import (
	"context"

	"github.com/animalstore/gatehouse/reference/internal/keys"
)

type keysRotateCmd struct {
	ID        string         `arg:"" help:"ID of the key to replace, as in petstore keys list."`
	Overlap   keys.Duration  `default:"24h" placeholder:"DURATION" help:"The old key stays valid for this long, at most until it expires (default ${default})."`
	ExpiresIn *keys.Duration `placeholder:"DURATION" help:"The new key is valid for this long from now; 0 means that it does not expire. Without it the new key has the lifetime of the old one."`
	keyFlags
}

// Help is shown by --help.
func (keysRotateCmd) Help() string {
	return `The new key has the name, owner, plan, quotas and limits of the old one. Only
the new key goes to standard output. The key is shown only now.`
}

func (c keysRotateCmd) Run(ctx context.Context, o output) error {
	r := keys.Replacement{Overlap: &c.Overlap, ExpiresIn: c.ExpiresIn}
	if err := r.Check(); err != nil {
		return keyUsage("rotate", err)
	}
	settings, _, err := c.load()
	if err != nil {
		return err
	}
	return c.manage(ctx, settings, false, func(m keyManager) error {
		rotated, err := m.Rotate(ctx, c.ID, r)
		if err != nil {
			return err
		}
		if err := o.showKey(rotated.Issued); err != nil {
			return err
		}
		o.say("The old key %s %s.", rotated.Old.ID, endText(rotated.Old.Expires))
		return nil
	})
}
