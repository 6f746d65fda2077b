package cli

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

type restoreCmd struct {
	Backup string `arg:"" help:"The backup, as petstore backup makes it. It is not changed."`
	databaseFlags
}

// Help is shown by --help.
func (restoreCmd) Help() string {
	return `Stop the server first. The backup is checked, and upgraded if it is of an older version.
The database that it replaces is kept under another name. Afterwards:

Pets, and the requests counted by day, are as in the backup. IDs of pets that were created
since are not given to other pets.

Keys and the audit log stay as they are in the database that is replaced. Keys that were
revoked or rotated since the backup stay so. Those that were created since keep working,
and the command names them. If the database cannot be read, the command refuses to replace it;
once it is moved away, the command names the keys that may have been revoked. The audit log
gets an entry for the restore. Usage and bans are not changed: they are in a file of their
own or in Redis.

The directory of the database needs room for three more copies of it.`
}

func (c restoreCmd) Run(ctx context.Context, o output) error {
	settings, err := c.loadSQLite(insteadOfRestore)
	if err != nil {
		return err
	}
	if isMissingFile(c.Backup) {
		return fmt.Errorf("cannot restore: backup %s does not exist", c.Backup)
	}
	r, err := longWork(ctx, func(ctx context.Context) (sqlite.Restored, error) {
		return sqlite.Restore(ctx, c.Backup, settings.Database, actor(), time.Now())
	})
	if err != nil {
		return fmt.Errorf("cannot restore: %w", err)
	}
	o.say("Restored %s from %s: %s.", settings.Database, c.Backup, contents(r.Report))
	if r.From < r.Schema {
		o.say("The backup had schema %d and was upgraded to %d.", r.From, r.Schema)
	}
	if r.Replaced == "" {
		o.say("There was no database, so keys that were revoked since the backup are not known.")
	} else {
		o.say("The database that was replaced is %s.", r.Replaced)
	}
	o.sayKeys(r.Unknown, "These keys are valid, and may have been revoked since the backup; revoke those that must not be:")
	o.sayKeys(r.Added, "These keys were created since the backup, and keep working:")
	return nil
}

// sayKeys names keys under a heading, if there are any.
func (o output) sayKeys(keys []store.Key, heading string) {
	if len(keys) == 0 {
		return
	}
	o.say("%s", heading)
	for _, k := range keys {
		o.say("  %s of %q, %q", k.ID, k.Owner, k.Name)
	}
}
