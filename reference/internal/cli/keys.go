package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/animalstore/gatehouse/middleware/apikey"
	"github.com/animalstore/gatehouse/reference/internal/api"
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Create a key and print it."`
	List   keysListCmd   `cmd:"" help:"List the keys without their secrets."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. Running servers refuse it within one second."`
	Rotate keysRotateCmd `cmd:"" help:"Replace a key with a new one and print the new one."`
}

type keysCreateCmd struct {
	Name      text     `required:"" placeholder:"TEXT" help:"What the key is for."`
	Owner     text     `required:"" placeholder:"TEXT" help:"Owner of the key. Usage is counted per owner: all keys of an owner share one quota."`
	Plan      string   `required:"" placeholder:"PLAN" help:"Plan of the key, such as free; petstore plans lists them."`
	Quota     []string `sep:"none" placeholder:"LIMIT/WINDOW" help:"Quota of the key, such as 5000/minute, up to four. Required for a custom plan, refused for any other."`
	Limit     []string `sep:"none" placeholder:"LIMIT/WINDOW" help:"Limit of this key alone, such as 100/minute, up to four. Its requests must fit it in addition to the quotas that all keys of the owner share."`
	ExpiresIn period   `placeholder:"DURATION" help:"The key is valid for this long from now, such as 30d; 0 means that it does not expire, as without the flag."`
	databaseFlags
}

// Help is shown by --help.
func (keysCreateCmd) Help() string {
	return `Only the key goes to standard output. The key is shown only now: the database stores
only its digest. Running servers accept it within one second.`
}

func (c keysCreateCmd) Run(ctx context.Context, o output, settings *config.Config) error {
	k := store.NewKey{Name: string(c.Name), Owner: string(c.Owner), Plan: c.Plan, Quotas: c.Quota, Limits: c.Limit, Created: time.Now()}
	if c.ExpiresIn > 0 {
		k.Expires = k.Created.Add(time.Duration(c.ExpiresIn))
	}
	_, planErr := settings.Plans.Of(k.Plan, k.Quotas)
	_, limitsErr := k.LimitsPlan()
	if err := cmp.Or(planErr, limitsErr); err != nil {
		text := strings.TrimPrefix(err.Error(), "sqlkeys: "+store.ErrInvalid.Error()+": ")
		return usageError{errors.New("keys create: " + text)}
	}
	secret, err := api.NewKey()
	if err != nil {
		return err
	}
	k.Digest, k.LastFour = secret.Digest(), secret.LastFour()
	return withDatabase(ctx, settings, true, func(db store.Store) error {
		key, err := db.CreateKey(ctx, k, actor())
		if err != nil {
			return err
		}
		return o.showKey(ctx, db, settings, key, secret, "run the command again")
	})
}

// showKey prints a key that was just stored. A key that cannot be printed is revoked again; the
// error says so, and ends with the advice.
func (o output) showKey(ctx context.Context, db store.Keys, settings *config.Config, key store.Key, secret apikey.Secret, advice string) error {
	signal.Ignore(syscall.SIGPIPE) // a write to a pipe without a reader returns an error instead
	if _, err := fmt.Fprintln(o.out, secret.Reveal()); err != nil {
		if _, failure := db.RevokeKey(ctx, key.ID, time.Now(), actor()); failure != nil {
			return fmt.Errorf("created key %s but cannot print it: %w; it cannot be revoked either: %w; revoke it later with petstore keys revoke, and %s",
				key.ID, err, failure, advice)
		}
		return fmt.Errorf("cannot print the new key %s: %w; it is revoked again; %s", key.ID, err, advice)
	}
	o.say("Created key %s of %q, plan %s, in database %s. It %s. The key is shown only now.",
		key.ID, key.Owner, key.Plan, fullName(settings.Database), endText(key.Expires))
	return nil
}

func endText(expires time.Time) string {
	if expires.IsZero() {
		return "does not expire"
	}
	return "expires at " + showTime(expires)
}

type keysListCmd struct {
	Owner text    `help:"Only keys of this owner." placeholder:"TEXT"`
	Plan  string  `help:"Only keys with this plan." placeholder:"PLAN"`
	State *string `help:"Only keys in this state: active, expired or revoked." enum:"active,expired,revoked" placeholder:"STATE"`
	JSON  bool    `help:"Print JSON."`
	databaseFlags
}

func (c keysListCmd) Run(ctx context.Context, o output, settings *config.Config) error {
	return withDatabase(ctx, settings, false, func(db store.Store) error {
		stored, err := db.ListKeys(ctx)
		if err != nil {
			return err
		}
		list, now := []keyInfo{}, time.Now()
		for _, k := range stored {
			info := infoOf(k, now)
			if (c.Owner == "" || k.Owner == string(c.Owner)) && (c.Plan == "" || k.Plan == c.Plan) && (c.State == nil || info.State == *c.State) {
				list = append(list, info)
			}
		}
		return show(o, c.JSON, list, "No key was found.", addKey, "ID", "KEY", "NAME", "OWNER", "PLAN", "STATE", "CREATED", "LAST USED", "EXPIRES")
	})
}

// A keyInfo describes a key without its secret.
type keyInfo struct {
	ID       string    `json:"id"`
	LastFour string    `json:"lastFour"` // the last four characters of the key
	Name     string    `json:"name"`
	Owner    string    `json:"owner"`
	Plan     string    `json:"plan"`
	Quotas   []string  `json:"quotas,omitempty"` // of a custom plan
	Limits   []string  `json:"limits,omitempty"` // quotas of the key alone
	State    string    `json:"state"`            // active, expired or revoked
	Created  time.Time `json:"created"`
	Expires  time.Time `json:"expires,omitzero"`  // zero: never
	Revoked  time.Time `json:"revoked,omitzero"`  // zero: not revoked
	LastUsed time.Time `json:"lastUsed,omitzero"` // zero: not yet
}

func infoOf(k store.Key, at time.Time) keyInfo {
	info := keyInfo{
		ID: k.ID, LastFour: k.LastFour, Name: k.Name, Owner: k.Owner, Plan: k.Plan, Quotas: k.Quotas, Limits: k.Limits,
		State: "active", Created: k.Created, Expires: k.Expires, Revoked: k.Revoked, LastUsed: k.LastUsed,
	}
	switch {
	case !k.Revoked.IsZero() && !k.Revoked.After(at):
		info.State = "revoked"
	case !k.Active(at):
		info.State = "expired"
	}
	return info
}

func addKey(t table, k keyInfo) {
	plan := k.Plan
	if len(k.Quotas) > 0 {
		plan += " (" + strings.Join(k.Quotas, ", ") + ")"
	}
	if len(k.Limits) > 0 {
		plan += ", key " + strings.Join(k.Limits, ", ")
	}
	orNever := func(at time.Time) string {
		if at.IsZero() {
			return "never"
		}
		return showTime(at)
	}
	t.row(k.ID, "..."+k.LastFour, k.Name, k.Owner, plan, k.State, showTime(k.Created), orNever(k.LastUsed), orNever(k.Expires))
}

type keysRevokeCmd struct {
	ID string `arg:"" help:"ID of the key, as in petstore keys list."`
	databaseFlags
}

func (c keysRevokeCmd) Run(ctx context.Context, o output, settings *config.Config) error {
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

type keysRotateCmd struct {
	ID        string  `arg:"" help:"ID of the key to replace, as in petstore keys list."`
	Overlap   period  `default:"24h" placeholder:"DURATION" help:"The old key stays valid for this long, at most until it expires (default ${default})."`
	ExpiresIn *period `placeholder:"DURATION" help:"The new key is valid for this long from now; 0 means that it does not expire. Without it the new key has the lifetime of the old one."`
	databaseFlags
}

// Help is shown by --help.
func (keysRotateCmd) Help() string {
	return `The new key has the name, owner, plan, quotas and limits of the old one. Only
the new key goes to standard output. The key is shown only now.`
}

func (c keysRotateCmd) Run(ctx context.Context, o output, settings *config.Config) error {
	return withDatabase(ctx, settings, false, func(db store.Store) error {
		old, err := db.Key(ctx, c.ID)
		if err != nil {
			return explainKey(c.ID, err)
		}
		secret, err := api.NewKey()
		if err != nil {
			return err
		}
		r := store.Rotation{Digest: secret.Digest(), LastFour: secret.LastFour(), At: time.Now(), Overlap: time.Duration(c.Overlap)}
		r.Expires = c.expires(old, r.At)
		key, err := db.RotateKey(ctx, c.ID, r, actor())
		if err != nil {
			return explainKey(c.ID, err)
		}
		ends := apikey.Record[apikey.Principal]{Expires: old.Expires}.ExpireAfter(r.At, r.Overlap).Expires
		advice := fmt.Sprintf("the old key %s %s; rotate it again before that", old.ID, endText(ends))
		if c.Overlap == 0 {
			advice = fmt.Sprintf("the old key %s is no longer valid; create another key with petstore keys create", old.ID)
		}
		if err := o.showKey(ctx, db, settings, key, secret, advice); err != nil {
			return err
		}
		o.say("The old key %s %s.", old.ID, endText(ends))
		return nil
	})
}

// expires returns when the new key expires.
func (c keysRotateCmd) expires(old store.Key, now time.Time) time.Time {
	switch {
	case c.ExpiresIn != nil && *c.ExpiresIn > 0:
		return now.Add(time.Duration(*c.ExpiresIn))
	case c.ExpiresIn != nil || old.Expires.IsZero():
		return time.Time{}
	default:
		return now.Add(old.Expires.Sub(old.Created))
	}
}
