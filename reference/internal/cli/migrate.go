package cli

import (
	"context"
	"fmt"

	"github.com/animalstore/gatehouse/reference/internal/database"
)

type migrateCmd struct{ databaseFlags }

// Help is shown by --help.
func (migrateCmd) Help() string {
	return `Creates the tables of a new database, and upgrades the schema of an older one. If there is
nothing to do, it changes nothing. Before it upgrades a SQLite file, it copies it, and
prints the name of the copy.

Without this command, the server and the commands that open the database do the same. With
the setting migrate: manual they refuse an older schema instead, so that the server can
use a role of PostgreSQL that cannot change tables, and the operator decides when they
change.`
}

func (c migrateCmd) Run(ctx context.Context, o output) error {
	settings, err := c.load()
	if err != nil {
		return err
	}
	name := database.Redacted(settings.Database)
	missing := isMissingFile(settings.Database)
	from, to, err := database.Migrate(ctx, settings.Database, database.Options{OnUpgrade: sayUpgrade})
	switch {
	case err != nil:
		return explainName(settings, fmt.Errorf("cannot migrate: %w", err))
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
