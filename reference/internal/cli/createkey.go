package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/keys"
)

type keysCreateCmd struct {
	Name      string        `required:"" placeholder:"TEXT" help:"What the key is for."`
	Owner     string        `required:"" placeholder:"TEXT" help:"Owner of the key. Usage is counted per owner: all keys of an owner share one quota."`
	Plan      string        `required:"" placeholder:"PLAN" help:"Plan of the key, such as free; petstore plans lists them."`
	Quota     []string      `sep:"none" placeholder:"LIMIT/WINDOW" help:"Quota of the key, such as 5000/minute, up to four. Required for a custom plan, refused for any other."`
	Limit     []string      `sep:"none" placeholder:"LIMIT/WINDOW" help:"Limit of this key alone, such as 100/minute, up to four. Its requests must fit it in addition to the quotas that all keys of the owner share."`
	ExpiresIn keys.Duration `placeholder:"DURATION" help:"The key is valid for this long from now, such as 30d; 0 means that it does not expire, as without the flag."`
	keyFlags
}

// Help is shown by --help.
func (keysCreateCmd) Help() string {
	return `Only the key goes to standard output. The key is shown only now: the database stores
only its digest. Running servers accept it within one second.`
}

func (c keysCreateCmd) Run(ctx context.Context, o output) error {
	settings, plans, err := c.load()
	if err != nil {
		return err
	}
	n := keys.New{
		Name: c.Name, Owner: c.Owner, Plan: c.Plan, Quotas: c.Quota, Limits: c.Limit,
		ExpiresIn: c.ExpiresIn,
	}
	if err := n.Check(plans); err != nil {
		return keyUsage("create", err)
	}
	return c.manage(ctx, settings, true, func(m keyManager) error {
		issued, err := m.Create(ctx, n)
		if err != nil {
			return err
		}
		return o.showKey(issued)
	})
}

// showKey prints a key that was just stored. The error names the key, because a key
// that was not printed is lost.
func (o output) showKey(issued keys.Issued) error {
	key := issued.Key
	if _, err := fmt.Fprintln(o.out, issued.Secret); err != nil {
		return fmt.Errorf("created key %s but could not print it; revoke it and create another one: %w", key.ID, err)
	}
	o.say("Created key %s of %q, plan %s. It %s. The key is shown only now.", key.ID, key.Owner, key.Plan, endText(key.Expires))
	return nil
}

func endText(expires *time.Time) string {
	if expires == nil {
		return "does not expire"
	}
	return "expires at " + showTime(*expires)
}
