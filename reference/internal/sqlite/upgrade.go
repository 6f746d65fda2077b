package sqlite

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pressly/goose/v3"
)

// An Upgrade is that of a file of an older version.
type Upgrade struct {
	File     string // as it was given to Open
	From, To int64  // versions of the schema
	Copy     string // path of the copy of the file as it was before
}

// errRaced: another process has upgraded the file meanwhile.
var errRaced = errors.New("another process has upgraded the file")

// upgrade brings the schema of the file from a version to the latest. It first makes a
// copy of a file that has content, so that an operator can go back to the older
// version of the program.
func (f file) upgrade(ctx context.Context, db *sql.DB, s schema, provider *goose.Provider, version, latest int64, o Options) error {
	var copied string // a copy of the file as it is now
	for version < latest {
		if version > 0 && !o.noCopy {
			var err error
			copied, err = f.copyBefore(ctx, db, s, version)
			switch {
			case errors.Is(err, errRaced):
				if version, err = f.inspect(ctx, db, s); err != nil {
					return err
				}
				continue
			case err != nil:
				return fmt.Errorf("upgrade database %s: it is copied first, and that failed, so nothing was changed: %w", f.name, err)
			}
			if o.OnUpgrade != nil {
				o.OnUpgrade(Upgrade{f.name, version, latest, copied})
			}
			o.noCopy = true
		}
		_, upErr := provider.Up(ctx)
		if upErr == nil {
			return nil
		}
		// Another process may be upgrading at the same time. Each step is one
		// transaction, so with every attempt one of the two makes progress.
		before := version
		var err error
		if version, err = f.inspect(ctx, db, s); err != nil {
			return err
		}
		if version == before {
			if copied != "" {
				// Otherwise each start that fails would leave another copy.
				upErr = errors.Join(upErr, os.Remove(copied))
			}
			return f.explain("upgrade", upErr)
		}
		copied = ""
	}
	return nil
}

// copyBefore copies the file, which has a version of the schema, and returns the path of
// the copy.
func (f file) copyBefore(ctx context.Context, db *sql.DB, s schema, version int64) (string, error) {
	for {
		to := fmt.Sprintf("%s.v%d-%s.backup", realPath(f.path), version, timestamp(time.Now()))
		err := f.copyTo(ctx, db, to, func(partial file) error { return partial.checkVersion(ctx, s, version) })
		if !errors.Is(err, fs.ErrExist) {
			return to, err
		}
		time.Sleep(time.Millisecond) // another process has made a copy in this one
	}
}

// checkVersion returns errRaced if the schema of the file does not have a version.
func (f file) checkVersion(ctx context.Context, s schema, version int64) error {
	db, err := f.connect(1, "query_only(1)")
	if err != nil {
		return err
	}
	defer db.Close()
	got, err := f.inspect(ctx, db, s)
	if err == nil && got != version {
		err = errRaced
	}
	return err
}

// timestamp formats a time for the name of a file.
func timestamp(t time.Time) string { return t.UTC().Format("20060102T150405.000Z") }
