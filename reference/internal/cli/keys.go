package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Create a key and print it."`
	List   keysListCmd   `cmd:"" help:"List the keys without their secrets."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. Running servers refuse it within one second."`
	Rotate keysRotateCmd `cmd:"" help:"Replace a key with a new one and print the new one."`
}

// withDatabase opens the database for do and closes it afterwards. It creates a
// database only if create is true.
func withDatabase(ctx context.Context, settings *config.Config, create bool, do func(store.Store) error) (err error) {
	_, statErr := os.Stat(settings.Database)
	missing := errors.Is(statErr, os.ErrNotExist)
	if missing && !create {
		return fmt.Errorf("database %s does not exist; choose another with --database, "+
			"or create it with petstore serve or petstore keys create", settings.Database)
	}
	db, err := sqlite.Open(ctx, settings.Database, sqlite.Options{OnUpgrade: sayUpgrade})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if missing {
		sayCreated(settings.Database)
	}
	return do(db)
}

// sayCreated reports that a database was created, with its directory: in a directory
// that is not the server's, the server does not find it, nor the keys in it.
func sayCreated(file string) {
	if full, err := filepath.Abs(file); err == nil {
		file = full
	}
	output{err: os.Stderr}.say("Created database %s.", file)
}

// sayUpgrade reports that the database is upgraded, and where the older one is kept.
func sayUpgrade(u sqlite.Upgrade) {
	output{err: os.Stderr}.say("Upgrading database %s from schema %d to %d. A copy of the older one is %s.", u.File, u.From, u.To, u.Copy)
}
