package cli

import (
	"context"
	"errors"
	"fmt"
	"io/fs"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

type backupCmd struct {
	File string `arg:"" help:"The file to write, which must not exist."`
	databaseFlags
}

// Help is shown by --help.
func (backupCmd) Help() string {
	return `Servers may be running. The backup has everything in the database as of one instant:
pets, keys (as digests), the audit log, the counted use. It does not have usage and bans,
which are in a file of their own or in Redis. The file has its name once it is complete, found
whole and synced to the disk, and only its owner can read it.

petstore restore uses a backup.`
}

func (c backupCmd) Run(ctx context.Context, o output) error {
	if c.File == "-" {
		return errors.New("cannot write a backup to standard output: name a file")
	}
	settings, err := c.loadSQLite(insteadOfBackup)
	if err != nil {
		return err
	}
	if isMissingFile(settings.Database) {
		return fmt.Errorf("cannot back up: database %s does not exist; choose another with --database", settings.Database)
	}
	report, err := longWork(ctx, func(ctx context.Context) (sqlite.Report, error) {
		return sqlite.Backup(ctx, settings.Database, c.File)
	})
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("cannot write the backup: %w; choose another name", err)
	case err != nil:
		return fmt.Errorf("cannot back up: %w", err)
	}
	o.say("Backed up %s to %s: %s, schema %d.", settings.Database, c.File, contents(report), report.Schema)
	o.say("Usage and bans are not in the backup.")
	return nil
}

// contents says how much is in a database.
func contents(r sqlite.Report) string {
	return plural(r.Pets, "pet") + ", " + plural(r.Keys, "key")
}

func plural[N int | int64](n N, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}
