package cli

import (
	"context"
	"errors"
	"fmt"
	"os"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type keysCmd struct {
	Create keysCreateCmd `cmd:"" help:"Make a key and print it."`
	List   keysListCmd   `cmd:"" help:"List the keys, without their secret parts."`
	Revoke keysRevokeCmd `cmd:"" help:"Revoke a key. Running servers refuse it within a second."`
	Rotate keysRotateCmd `cmd:"" help:"Make a key that replaces another one, and print it."`
}

// withDatabase opens the database, and closes it when do is done. Commands that only
// look do not make one.
func withDatabase(ctx context.Context, settings *config.Config, create bool, do func(store.Store) error) (err error) {
	if !create {
		if _, err := os.Stat(settings.Database); errors.Is(err, os.ErrNotExist) {
			return fmt.Errorf("there is no database %s here; name another with --database, "+
				"or make it with petstore serve or petstore keys create", settings.Database)
		}
	}
	db, err := sqlite.Open(ctx, settings.Database, sqlite.Options{})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	return do(db)
}
