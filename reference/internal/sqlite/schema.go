package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pressly/goose/v3"
)

//go:embed migrations/main
var embedded embed.FS

// migrations are the steps that make the schema. The first sets the applicationID.
var migrations, _ = fs.Sub(embedded, "migrations/main") // fails only for another kind of name

// applicationID is the application_id of a file of this program: "PETS".
const applicationID int32 = 0x50455453

// newProvider returns the migrations for a database.
func newProvider(db *sql.DB) (*goose.Provider, error) {
	// Goose's registry and its log are global, so they are not used.
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, migrations,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, fmt.Errorf("read migrations: %w", err)
	}
	return provider, nil
}

// latestVersion returns the version of the newest migration.
func latestVersion() (int64, error) {
	names, err := fs.Glob(migrations, "*.sql")
	if err != nil {
		return 0, err
	}
	return goose.NumericComponent(names[len(names)-1])
}

// prepare upgrades the file to the newest version of the schema (to) from the one that it had,
// 0 if it had none. It refuses a file of another kind and does not change it.
func (f file) prepare(ctx context.Context, db *sql.DB, o Options) (from, to int64, err error) {
	latest, err := latestVersion()
	if err != nil {
		return 0, 0, err
	}
	var copied string // path of a copy of an older file; "": none was made
	err = f.snapshot(ctx, db, func(conn *sql.Conn) (err error) {
		switch from, err = f.inspect(ctx, conn); {
		case err != nil || from == latest:
			return err
		case o.NoMigrate:
			return fmt.Errorf("open database %s: it has schema %d, this version needs %d, and migrate is manual; run petstore migrate",
				f.name, from, latest)
		case from > 0:
			copied, err = f.copyBefore(ctx, conn, from)
		}
		return err
	})
	if err != nil {
		return 0, 0, err
	}
	if copied != "" && o.OnUpgrade != nil {
		o.OnUpgrade(Upgrade{f.name, from, latest, copied})
	}
	if err := f.useWAL(ctx, db); err != nil {
		return 0, 0, err
	}
	to, err = f.upgrade(ctx, db, from)
	if err != nil && to == from && copied != "" { // otherwise each start that fails would leave another copy
		_ = os.Remove(copied)
	}
	return from, to, err
}

// inspect returns the version of the schema of the file, 0 if it has none yet. It refuses a
// newer one, and one with a trigger or a view, which can change what a statement does. It
// only reads. The connection sees the file as of one instant, because another process may be
// creating the tables now.
func (f file) inspect(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	if version, err = f.version(ctx, conn); err != nil {
		return 0, err
	}
	latest, err := latestVersion()
	if err != nil {
		return 0, err
	}
	if version > latest {
		return 0, fmt.Errorf("open database %s: a newer version of this program wrote it (schema %d, this version knows %d); use the newer version, or restore an older backup",
			f.name, version, latest)
	}
	var object string
	if err := conn.QueryRowContext(ctx, `SELECT coalesce(min(type || ' ' || name), '') FROM sqlite_schema
		WHERE type IN ('trigger', 'view')`).Scan(&object); err != nil {
		return 0, f.explain("open", err)
	}
	if object != "" {
		return 0, fmt.Errorf("open database %s: its schema is not that of this program: %s", f.name, object)
	}
	return version, nil
}

// version returns the version of the schema, 0 if there is none yet. It refuses a file of
// another program.
func (f file) version(ctx context.Context, conn *sql.Conn) (version int64, err error) {
	var found int32
	var versioned, foreign bool
	if err := conn.QueryRowContext(ctx, `
		SELECT application_id,
		       EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'goose_db_version'),
		       EXISTS (SELECT 1 FROM sqlite_schema WHERE name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#')
		FROM pragma_application_id`,
	).Scan(&found, &versioned, &foreign); err != nil {
		return 0, f.explain("open", err)
	}
	switch {
	case found != applicationID && (found != 0 || foreign):
		return 0, fmt.Errorf("open database %s: it belongs to another program; choose another file", f.name)
	case !versioned:
		return 0, nil
	}
	if err := conn.QueryRowContext(ctx,
		"SELECT coalesce(max(version_id), 0) FROM goose_db_version WHERE is_applied").Scan(&version); err != nil {
		return 0, f.explain("open", err)
	}
	return version, nil
}

// Migrate creates the database in the file at path, or upgrades one of an older version
// as [Open] does, and closes it. It returns the versions of its schema before and
// after; from is 0 for a database that had none.
func Migrate(ctx context.Context, path string, o Options) (from, to int64, err error) {
	o.NoMigrate = false
	s, err := Open(ctx, path, o)
	if err != nil {
		return 0, 0, err
	}
	return s.before, s.schema, s.Close()
}

// An Upgrade describes the upgrade of a file of an older version.
type Upgrade struct {
	Database string // as it was given to Open
	From, To int64  // versions of the schema
	Copy     string // path of the copy of the file as it was before
}

// upgrade brings the schema of the file from a version to the newest, and returns the version
// that it has reached.
func (f file) upgrade(ctx context.Context, db *sql.DB, version int64) (reached int64, err error) {
	provider, err := newProvider(db)
	if err != nil {
		return version, err
	}
	latest, err := latestVersion()
	if err != nil {
		return version, err
	}
	for version < latest {
		_, upErr := provider.Up(ctx)
		if upErr == nil {
			return latest, nil
		}
		// Another process may be upgrading at the same time. Each step is one
		// transaction, so with every attempt one of the two makes progress.
		before := version
		if err := f.snapshot(ctx, db, func(conn *sql.Conn) (err error) {
			version, err = f.inspect(ctx, conn)
			return err
		}); err != nil {
			return version, err
		}
		if version == before {
			return version, f.explain("upgrade", upErr)
		}
	}
	return version, nil
}

// copyBefore copies the file, which has a version of the schema, so that an operator can go
// back to the older version of the program. It returns the path of the copy.
func (f file) copyBefore(ctx context.Context, conn *sql.Conn, version int64) (string, error) {
	for {
		to := fmt.Sprintf("%s.v%d-%s.backup", realPath(f.path), version, timestamp(time.Now()))
		switch err := f.copyTo(ctx, conn, to); {
		case errors.Is(err, fs.ErrExist):
			time.Sleep(time.Millisecond) // another process has made a copy in this one
		case err != nil:
			return "", fmt.Errorf("upgrade database %s: it is copied first, and that failed, so nothing was changed: %w", f.name, err)
		default:
			return to, nil
		}
	}
}

// timestamp formats a time for the name of a file.
func timestamp(t time.Time) string { return t.UTC().Format("20060102T150405.000Z") }

// inMemory returns an empty database with a version of the schema, which this program knows.
func inMemory(ctx context.Context, version int64) (*sql.DB, error) {
	db, err := sql.Open("sqlite", ":memory:")
	if err != nil {
		return nil, err
	}
	db.SetMaxOpenConns(1) // each connection would have a database of its own
	provider, err := newProvider(db)
	if err == nil {
		_, err = provider.UpTo(ctx, version)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("make the schema in memory: %w", err), db.Close())
	}
	return db, nil
}
