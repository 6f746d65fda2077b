package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/keys"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// keyFlags say where the commands about keys find them: in the database, or with --admin
// through a running server.
type keyFlags struct {
	configFlag
	Database    *string `placeholder:"FILE|URL" help:"The database with the keys: a SQLite file or a postgres:// URL ($$PETSTORE_DATABASE)."`
	Admin       bool    `help:"Ask the admin listener of a running server, which may be on another machine, instead of opening the database."`
	AdminListen *string `placeholder:"HOST:PORT" help:"With --admin, the address of the admin listener ($$PETSTORE_ADMIN_LISTEN). If it has a token, set $$PETSTORE_ADMIN_TOKEN, or admin_token in the settings file."`
}

// A keyManager lists and changes keys. [keys.Manager] does it in the database, and
// [adminapi.Client] through a server.
type keyManager interface {
	List(context.Context) ([]keys.Info, error)
	Create(context.Context, keys.New) (keys.Issued, error)
	Revoke(ctx context.Context, id string) (keys.Revoked, error)
	Rotate(ctx context.Context, id string, r keys.Replacement) (keys.Rotated, error)
}

// load returns the settings and the plans. With --admin there are no plans, because the
// server knows its own.
func (f keyFlags) load() (settings *config.Config, plans keys.PlanFunc, err error) {
	switch {
	case f.Admin && f.Database != nil:
		return nil, nil, usageError{errors.New("--admin asks a running server, which knows its database; remove --database or --admin")}
	case !f.Admin && f.AdminListen != nil:
		return nil, nil, usageError{errors.New("--admin-listen needs --admin, because keys are changed in the database otherwise; add --admin or remove --admin-listen")}
	}
	settings, err = load(config.Flags{Config: f.Config, Database: f.Database, AdminListen: f.AdminListen})
	if err != nil || f.Admin {
		return settings, nil, err
	}
	return settings, settings.Plans.Of, nil
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
