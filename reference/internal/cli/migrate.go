package cli

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/database"
)

type migrateCmd struct{ databaseFlags }

// Help is shown by --help.
func (migrateCmd) Help() string {
	return `Creates the tables of a new database, and upgrades the schema of an older one. If there is
nothing to do, it changes nothing. Before it upgrades a SQLite file, it copies it, and
prints the name of the copy.

Without this command, the server and the commands that open the database do the same. With
the setting migrate: manual they refuse an older schema instead. So the operator decides
when tables change, and the server can use a role of PostgreSQL that cannot change them.`
}

func (c migrateCmd) Run(ctx context.Context, o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	name := database.Redacted(settings.Database)
	missing := isMissingFile(settings.Database)
	var from int64
	to, err := longWork(ctx, func(ctx context.Context) (to int64, err error) {
		from, to, err = database.Migrate(ctx, settings.Database, database.Options{OnUpgrade: sayUpgrade})
		return to, err
	})
	switch {
	case err != nil:
		return fmt.Errorf("cannot migrate: %w", err)
	case missing:
		sayCreated(settings.Database)
		o.say("It has schema %d.", to)
	case from == 0:
		o.say("Created the tables of schema %d in database %s.", to, name)
	case from == to:
		o.say("Database %s has schema %d; there is nothing to do.", name, to)
	default:
		o.say("Upgraded database %s from schema %d to %d.", name, from, to)
	}
	return nil
}

type importCmd struct {
	File string `arg:"" help:"The SQLite file: a backup, or the file of a server that has stopped. It is not changed."`
	databaseFlags
}

// Help is shown by --help.
func (importCmd) Help() string {
	return `Moves a server from SQLite to PostgreSQL. Stop it first, so that nothing is written to the
file afterwards. The database of the settings must be PostgreSQL and empty. The command
creates its tables, unless the settings have migrate: manual: then run petstore migrate
first. Import before the first server starts on it, because that creates a key.

Pets keep their IDs, and keys work as before, so that clients need no change. The audit log,
the counts of use and idempotency keys are copied too, and the audit log gets an entry for
the import. Usage and bans are not in the file: those in Redis stay, and so do those in a usage
file if usage_file names it. If you change from a usage file to Redis, they begin anew.

Everything is copied in one transaction, or nothing. The file is checked first. Upgrade
one of an older version first, with petstore migrate. The user of PostgreSQL must own the tables.`
}

func (c importCmd) Run(ctx context.Context, o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	if !database.IsPostgres(settings.Database) {
		return usageError{settings.Errorf("database", "petstore import copies a SQLite file into PostgreSQL, so the database must be a postgres:// URL; "+
			"to replace a SQLite file use petstore restore")}
	}
	if database.IsPostgres(c.File) {
		return usageError{errors.New("petstore import copies a SQLite file, got a URL; set the PostgreSQL database with --database or PETSTORE_DATABASE")}
	}
	if isMissingFile(c.File) {
		return fmt.Errorf("cannot import: file %s does not exist", c.File)
	}
	n, err := longWork(ctx, func(ctx context.Context) (database.Imported, error) {
		return database.Import(ctx, settings.Database, c.File, actor(), time.Now(), database.Options{
			NoMigrate: settings.Migrate == config.MigrateManual, OnUpgrade: sayUpgrade,
		})
	})
	if err != nil {
		return fmt.Errorf("cannot import: %w", err)
	}
	o.say("Imported %s into %s: %s, %s.", escape(c.File), database.Redacted(settings.Database), plural(n.Pets, "pet"), plural(n.Keys, "key"))
	o.say("Usage and bans are not imported: those in Redis stay, and so do those in a usage file if usage_file names it.")
	return nil
}
