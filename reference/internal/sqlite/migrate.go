package sqlite

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"

	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrations embed.FS

// A schema is the schema of one kind of file.
type schema struct {
	folder string // of the migrations
	mark   int32  // the application_id that the first of them sets
	orElse string // what to do about a file of a newer version, if not to use that version
}

var (
	mainSchema  = schema{"migrations/main", 0x50455453, "restore an older backup"}
	usageSchema = schema{"migrations/usage", 0x50455455, "delete the file, which resets all quotas and ends all bans"}
)

// provider returns the migrations of the schema for a database, and the version of the
// newest.
func (s schema) provider(db *sql.DB) (_ *goose.Provider, latest int64, err error) {
	folder, err := fs.Sub(migrations, s.folder)
	if err != nil {
		return nil, 0, err
	}
	// Goose's registry and its log are global, so they are not used.
	provider, err := goose.NewProvider(goose.DialectSQLite3, db, folder,
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return nil, 0, fmt.Errorf("read migrations: %w", err)
	}
	sources := provider.ListSources()
	return provider, sources[len(sources)-1].Version, nil
}

// prepare upgrades the file to the newest version of the schema. It refuses a file of
// another kind and does not change it.
func (f file) prepare(ctx context.Context, db *sql.DB, s schema, o Options) error {
	provider, latest, err := s.provider(db)
	if err != nil {
		return err
	}
	version, err := f.inspect(ctx, db, s)
	if err != nil {
		return err
	}
	if version < latest && o.NoMigrate && s == mainSchema {
		return f.older(version, latest)
	}
	if err := f.useWAL(ctx, db); err != nil {
		return err
	}
	if err := f.checkWritable(ctx, db); err != nil {
		return err
	}

	return f.upgrade(ctx, db, s, provider, version, latest, o)
}

// newer is the error for a file of a newer version.
func (f file) newer(s schema, version, latest int64) error {
	return fmt.Errorf("open database %s: a newer version of this program wrote it (schema %d, this version knows %d); use the newer version, or %s",
		f.name, version, latest, s.orElse)
}

// older is the error for a file of an older version that must not be upgraded.
func (f file) older(version, latest int64) error {
	return fmt.Errorf("open database %s: it has schema %d, this version needs %d, and migrate is manual; run petstore migrate", f.name, version, latest)
}

// inspect returns the version of the schema of the file, 0 if it has none yet. It refuses a
// newer one, and one that is not as the migrations make it. It only reads.
func (f file) inspect(ctx context.Context, db *sql.DB, s schema) (version int64, err error) {
	conn, err := db.Conn(ctx)
	if err != nil {
		return 0, f.explain("open", err)
	}
	defer conn.Close()

	// One transaction, because another process may be creating the tables now.
	if _, err := conn.ExecContext(ctx, "BEGIN"); err != nil {
		return 0, f.explain("open", err)
	}
	defer conn.ExecContext(context.WithoutCancel(ctx), "ROLLBACK")

	_, latest, err := s.provider(db)
	if err != nil {
		return 0, err
	}
	if version, err = f.version(ctx, conn, s); err != nil {
		return 0, err
	}
	if version > latest {
		return 0, f.newer(s, version, latest)
	}
	switch differences, err := s.differences(ctx, conn, version); {
	case err != nil:
		return 0, f.explain("open", err)
	case len(differences) > 0:
		return 0, fmt.Errorf("open database %s: %w: %s; petstore check shows all differences", f.name, errSchema, differences[0])
	}
	return version, nil
}

// version returns the version of the schema, 0 if there is none yet. It refuses a file of
// another program.
func (f file) version(ctx context.Context, conn *sql.Conn, s schema) (version int64, err error) {
	var mark int32
	var versioned, foreign bool
	if err := conn.QueryRowContext(ctx, `
		SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE name = 'goose_db_version'),
		       EXISTS (SELECT 1 FROM sqlite_schema WHERE name <> 'goose_db_version' AND name NOT LIKE 'sqlite#_%' ESCAPE '#')`,
	).Scan(&versioned, &foreign); err != nil {
		return 0, f.explain("open", err)
	}
	if err := conn.QueryRowContext(ctx, "PRAGMA application_id").Scan(&mark); err != nil {
		return 0, f.explain("open", err)
	}

	switch {
	case mark != s.mark && (mark != 0 || foreign):
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
	if err := o.validate(); err != nil {
		return 0, 0, err
	}
	if from, err = versionOf(ctx, path, o.withDefaults()); err != nil {
		return 0, 0, err
	}
	db, err := Open(ctx, path, o)
	if err != nil {
		return 0, 0, err
	}
	_, to, err = mainSchema.provider(db.writes)
	return from, to, errors.Join(err, db.Close())
}

// versionOf returns the version of the schema of the database at path, 0 if it does not
// exist.
func versionOf(ctx context.Context, path string, o Options) (int64, error) {
	f, err := existingFile(path, o.BusyTimeout)
	if errors.Is(err, fs.ErrNotExist) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	db, err := f.connect(1, "query_only(1)")
	if err != nil {
		return 0, err
	}
	defer db.Close()
	return f.inspect(ctx, db, mainSchema)
}
