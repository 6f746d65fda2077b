package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Create a key and print it."`
	List   keysListCmd   `cmd:"" help:"List the keys without their secrets."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. Running servers refuse it within one second."`
	Rotate keysRotateCmd `cmd:"" help:"Replace a key with a new one and print the new one."`
}

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
	settings, err := c.load()
	if err != nil {
		return err
	}
	n := keys.New{
		Name: c.Name, Owner: c.Owner, Plan: c.Plan, Quotas: c.Quota, Limits: c.Limit,
		ExpiresIn: c.ExpiresIn,
	}
	var plans keys.PlanFunc // a running server knows its own
	if !c.Admin {
		plans = settings.Plans.Of
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

type keysListCmd struct {
	Owner string  `help:"Only keys of this owner." placeholder:"TEXT"`
	Plan  string  `help:"Only keys with this plan." placeholder:"PLAN"`
	State *string `help:"Only keys in this state: active, expired or revoked." enum:"active,expired,revoked" placeholder:"STATE"`
	JSON  bool    `help:"Print JSON."`
	keyFlags
}

func (c keysListCmd) Run(ctx context.Context, o output) error {
	return c.withKeys(ctx, func(m keyManager) error {
		list, err := m.List(ctx)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(k keys.Info) bool {
			return c.Owner != "" && k.Owner != c.Owner || c.Plan != "" && k.Plan != c.Plan || c.State != nil && k.State != *c.State
		})
		return show(o, c.JSON, list, "No key was found.", printKeys)
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

type keysRevokeCmd struct {
	ID string `arg:"" help:"ID of the key, as in petstore keys list."`
	keyFlags
}

func (c keysRevokeCmd) Run(ctx context.Context, o output) error {
	return c.withKeys(ctx, func(m keyManager) error {
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
	return c.withKeys(ctx, func(m keyManager) error {
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

// keyFlags say where the commands about keys find them: in the database, or with --admin
// through a running server.
type keyFlags struct {
	configFlag
	Database    *string `placeholder:"FILE|URL" help:"The database with the keys: a SQLite file or a postgres:// URL ($$PETSTORE_DATABASE)."`
	Admin       bool    `help:"Ask the admin listener of a running server, which may be on another machine, instead of opening the database."`
	AdminListen *string `placeholder:"HOST:PORT" help:"With --admin, the address of the admin listener ($$PETSTORE_ADMIN_LISTEN). If it has a token, set $$PETSTORE_ADMIN_TOKEN, or admin_token in the settings file."`
}

// A keyManager lists and changes keys. [keys.Manager] does it in the database, and
// [admin.Client] through a server.
type keyManager interface {
	List(context.Context) ([]keys.Info, error)
	Create(context.Context, keys.New) (keys.Issued, error)
	Revoke(ctx context.Context, id string) (keys.Revoked, error)
	Rotate(ctx context.Context, id string, r keys.Replacement) (keys.Rotated, error)
}

func (f keyFlags) load() (*config.Config, error) {
	switch {
	case f.Admin && f.Database != nil:
		return nil, usageError{errors.New("--admin asks a running server, which knows its database; remove --database or --admin")}
	case !f.Admin && f.AdminListen != nil:
		return nil, usageError{errors.New("--admin-listen needs --admin, because keys are changed in the database otherwise; add --admin or remove --admin-listen")}
	}
	return load(config.Flags{"config": f.Config, "database": f.Database, "admin_listen": f.AdminListen})
}

// withKeys calls do with the keys of a database that exists.
func (f keyFlags) withKeys(ctx context.Context, do func(keyManager) error) error {
	settings, err := f.load()
	if err != nil {
		return err
	}
	return f.manage(ctx, settings, false, do)
}

// manage calls do with the keys. It creates a database only if create is true.
func (f keyFlags) manage(ctx context.Context, settings *config.Config, create bool, do func(keyManager) error) error {
	if f.Admin {
		client, err := adminClient(settings)
		if err != nil {
			return err
		}
		return explainAdmin(do(client.Keys()))
	}
	return withDatabase(ctx, settings, create, func(db store.Store) error {
		return do(keys.Manager{Store: db, Plan: settings.Plans.Of, Actor: actor(), Now: time.Now})
	})
}

// keyFieldFlags are the flags of the fields of a request.
var keyFieldFlags = map[string]string{"name": "--name", "owner": "--owner", "expiresIn": "--expires-in", "overlap": "--overlap"}

// keyUsage returns the usage error for a request that cannot be made.
func keyUsage(command string, err error) error {
	if e, ok := errors.AsType[*keys.FieldError](err); ok {
		return usageError{fmt.Errorf("keys %s: %s %w", command, keyFieldFlags[e.Field], e.Err)}
	}
	return usageError{fmt.Errorf("keys %s: %w", command, err)}
}

// showable quotes text with characters that are invisible or change how other text is
// shown, such as zero-width spaces, bidirectional controls and spaces at an end. Different
// texts are shown differently.
func showable(text string) string {
	if !utf8.ValidString(text) || strings.ContainsFunc(text, hidden) || strings.TrimSpace(text) != text || strings.HasPrefix(text, `"`) {
		return escape(strconv.Quote(text))
	}
	return text
}

// escape writes hidden characters as in Go, and U+FFFD instead of bytes that are not UTF-8,
// so that text from elsewhere cannot control a terminal.
func escape(text string) string {
	text = strings.ToValidUTF8(text, string(utf8.RuneError))
	if !strings.ContainsFunc(text, hidden) {
		return text
	}
	var b strings.Builder
	for _, r := range text {
		switch {
		case !hidden(r):
			b.WriteRune(r)
		case r < 0x10000:
			fmt.Fprintf(&b, `\u%04x`, r)
		default:
			fmt.Fprintf(&b, `\U%08x`, r)
		}
	}
	return b.String()
}

// hidden reports whether a character cannot be seen. [unicode.IsPrint] counts some of them
// as letters, symbols or marks, such as the Hangul filler and variation selectors.
func hidden(r rune) bool {
	const brailleBlank = '\u2800'
	return !unicode.IsPrint(r) || r == brailleBlank || unicode.In(r, unicode.Other_Default_Ignorable_Code_Point, unicode.Variation_Selector)
}
