package cli

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysListCmd struct {
	JSON bool `help:"Print JSON."`
	databaseFlags
}

func (c keysListCmd) Run(ctx context.Context, o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	return withDatabase(ctx, settings, false, func(db store.Store) error {
		keys, err := db.ListKeys(ctx)
		switch {
		case err != nil:
			return err
		case c.JSON:
			return printJSON(o.out, keysJSON(keys, time.Now()))
		case len(keys) == 0:
			o.say("There are no keys.")
			return nil
		default:
			return printKeys(o.out, keys, time.Now())
		}
	})
}

// keyJSON is a key without its secret.
type keyJSON struct {
	ID       string     `json:"id"`
	LastFour string     `json:"lastFour"`
	Name     string     `json:"name"`
	Owner    string     `json:"owner"`
	Plan     string     `json:"plan"`
	Quotas   []string   `json:"quotas,omitempty"`
	Limits   []string   `json:"limits,omitempty"`
	State    string     `json:"state"`
	Created  time.Time  `json:"created"`
	Expires  *time.Time `json:"expires,omitempty"`
	Revoked  *time.Time `json:"revoked,omitempty"`
}

func keysJSON(keys []store.Key, now time.Time) []keyJSON {
	list := make([]keyJSON, len(keys))
	for i, k := range keys {
		list[i] = keyJSON{
			ID: k.ID, LastFour: k.LastFour, Name: k.Name, Owner: k.Owner, Plan: k.Plan, Quotas: k.Quotas, Limits: k.Limits,
			State: keyState(k, now), Created: k.Created, Expires: optional(k.Expires), Revoked: optional(k.Revoked),
		}
	}
	return list
}

func optional(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

func printKeys(w io.Writer, keys []store.Key, now time.Time) error {
	t := newTable(w, "ID", "KEY", "NAME", "OWNER", "PLAN", "STATE", "CREATED", "EXPIRES")
	for _, k := range keys {
		plan := k.Plan
		if len(k.Quotas) > 0 {
			plan += " (" + strings.Join(k.Quotas, ", ") + ")"
		}
		if len(k.Limits) > 0 {
			plan += ", key " + strings.Join(k.Limits, ", ")
		}
		expires := "never"
		if !k.Expires.IsZero() {
			expires = showTime(k.Expires)
		}
		t.row(k.ID, "..."+k.LastFour, k.Name, k.Owner, plan, keyState(k, now), showTime(k.Created), expires)
	}
	return t.flush()
}

func keyState(k store.Key, now time.Time) string {
	switch {
	case !k.Revoked.IsZero() && !k.Revoked.After(now):
		return "revoked"
	case !k.Active(now):
		return "expired"
	default:
		return "active"
	}
}
