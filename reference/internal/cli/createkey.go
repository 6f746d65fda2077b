package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/reference/internal/service"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysCreateCmd struct {
	Name      string        `required:"" placeholder:"TEXT" help:"What the key is for."`
	Owner     string        `required:"" placeholder:"TEXT" help:"The owner that usage is counted for. All keys of an owner share one quota."`
	Plan      string        `required:"" placeholder:"PLAN" help:"A plan of the settings, such as free; see petstore plans."`
	Quota     []string      `sep:"none" placeholder:"LIMIT/WINDOW" help:"A quota of the key, such as 5000/minute. Required for a custom plan and refused for any other; up to four."`
	ExpiresIn time.Duration `placeholder:"DURATION" help:"How long the key is valid from now, such as 720h. Without it the key never expires."`
	databaseFlags
}

// Help is shown by --help.
func (keysCreateCmd) Help() string {
	return `Only the key goes to standard output. It is shown only now, since the database holds
only a digest of it. Running servers accept it within a second.`
}

func (c keysCreateCmd) Run(ctx context.Context, o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	if _, err := settings.Plans.Of(c.Plan, c.Quota); err != nil {
		return usageError{fmt.Errorf("keys create: --plan, --quota: %w", err)}
	}
	if c.ExpiresIn < 0 {
		return usageError{errors.New("keys create: --expires-in: a key must not expire before it is made")}
	}
	secret, err := service.NewSecret()
	if err != nil {
		return err
	}
	now := time.Now()
	k := store.NewKey{
		Digest: secret.Digest(), LastFour: secret.LastFour(),
		Name: c.Name, Owner: c.Owner, Plan: c.Plan, Quotas: c.Quota, Created: now,
	}
	if c.ExpiresIn > 0 {
		k.Expires = now.Add(c.ExpiresIn)
	}
	if err := k.Validate(); err != nil {
		return usageError{fmt.Errorf("keys create: %w", err)}
	}
	return withDatabase(ctx, settings, true, func(db store.Store) error {
		key, err := db.CreateKey(ctx, k)
		if err != nil {
			return err
		}
		return o.showKey(key, secret)
	})
}

// showKey prints a key that was just stored. If it cannot, the key is useless, and
// the error names it.
func (o output) showKey(key store.Key, secret apikey.Secret) error {
	if _, err := fmt.Fprintln(o.out, secret.Reveal()); err != nil {
		return fmt.Errorf("key %s was made and could not be printed; revoke it and make another: %w", key.ID, err)
	}
	o.say("Key %s of %q, plan %s, %s. It is shown only now.", key.ID, key.Owner, key.Plan, endText(key.Expires))
	return nil
}

func endText(expires time.Time) string {
	if expires.IsZero() {
		return "does not expire"
	}
	return "expires at " + showTime(expires)
}
