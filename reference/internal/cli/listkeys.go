package cli

import (
	"context"
	"io"
	"slices"
	"strings"

	"github.com/animalstore/gatehouse/reference/internal/keys"
)

type keysListCmd struct {
	Owner string  `help:"Only keys of this owner." placeholder:"TEXT"`
	Plan  string  `help:"Only keys with this plan." placeholder:"PLAN"`
	State *string `help:"Only keys in this state: active, expired or revoked." enum:"active,expired,revoked" placeholder:"STATE"`
	JSON  bool    `help:"Print JSON."`
	keyFlags
}

func (c keysListCmd) Run(ctx context.Context, o output) error {
	settings, _, err := c.load()
	if err != nil {
		return err
	}
	return c.manage(ctx, settings, false, func(m keyManager) error {
		list, err := m.List(ctx)
		list = slices.DeleteFunc(list, func(k keys.Info) bool {
			return c.Owner != "" && k.Owner != c.Owner || c.Plan != "" && k.Plan != c.Plan || c.State != nil && k.State != *c.State
		})
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(o.out, list)
		case len(list) == 0:
			o.say("No key was found.")
			return nil
		default:
			return printKeys(o.out, list)
		}
	})
}

func printKeys(w io.Writer, list []keys.Info) error {
	t := newTable(w, "ID", "KEY", "NAME", "OWNER", "PLAN", "STATE", "CREATED", "EXPIRES")
	for _, k := range list {
		plan := k.Plan
		if len(k.Quotas) > 0 {
			plan += " (" + strings.Join(k.Quotas, ", ") + ")"
		}
		if len(k.Limits) > 0 {
			plan += ", key " + strings.Join(k.Limits, ", ")
		}
		expires := "never"
		if k.Expires != nil {
			expires = showTime(*k.Expires)
		}
		t.row(k.ID, "..."+k.LastFour, k.Name, k.Owner, plan, k.State, showTime(k.Created), expires)
	}
	return t.flush()
}
