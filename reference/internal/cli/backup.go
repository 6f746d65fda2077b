package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/mattn/go-isatty"

	"github.com/animalstore/gatehouse/reference/internal/sqlite"
)

type backupCmd struct {
	File string `arg:"" help:"The file to write, which must not exist, or - for standard output."`
	databaseFlags
}

// Help is shown by --help.
func (backupCmd) Help() string {
	return `Servers may be running. The backup has everything in the database as of one instant:
pets, keys (as digests), the audit log, the counted use. It does not have usage and bans,
which are in a file of their own or in Redis. The file has its name once it is complete, found
whole and synced to the disk, and only its owner can read it.

With - the backup is written to standard output once it is complete; until then it needs room
in the directory for temporary files, which TMPDIR chooses.

petstore restore uses a backup.`
}

func (c backupCmd) Run(ctx context.Context, o output) error {
	settings, err := c.loadSQLite(insteadOfBackup)
	if err != nil {
		return err
	}
	if isMissingFile(settings.Database) {
		return fmt.Errorf("cannot back up: database %s does not exist; choose another with --database", settings.Database)
	}
	to := c.File
	if to == "-" {
		if isatty.IsTerminal(o.out.Fd()) {
			return usageError{errors.New("backup: standard output is a terminal; redirect it to a file or to another command")}
		}
		dir, err := os.MkdirTemp("", "petstore-backup-*")
		if err != nil {
			return fmt.Errorf("cannot back up: %w", err)
		}
		defer os.RemoveAll(dir)
		to = filepath.Join(dir, "backup.db")
	}
	var report sqlite.Report
	err = longWork(ctx, func(ctx context.Context, bar *progress) (err error) {
		report, err = sqlite.Backup(ctx, settings.Database, to, sqlite.Options{Progress: bar.show})
		return err
	})
	switch {
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("cannot write the backup: %w; choose another name", err)
	case err != nil:
		return fmt.Errorf("cannot back up: %w", err)
	}
	if c.File == "-" {
		if err := moveTo(o.out, to); err != nil {
			return fmt.Errorf("cannot write the backup: %w", err)
		}
	}
	o.say("Backed up %s to %s: %s, schema %d.", settings.Database, c.File, contents(report), report.Schema)
	o.say("Usage and bans are not in the backup.")
	return nil
}

// moveTo copies a file to w. It deletes the file, with its directory, first, where the system can
// do that, so that nothing is left if the command is killed meanwhile.
func moveTo(w io.Writer, path string) error {
	f, err := os.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	_ = os.RemoveAll(filepath.Dir(path))
	_, err = io.Copy(w, f)
	return err
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
