package postgres

import (
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
)

//go:embed migrations
var migrationFiles embed.FS

var ownMigrations, _ = fs.Sub(migrationFiles, "migrations") // fails only for another kind of name

// versionTable has the migrations that were applied. Its name belongs to this program,
// because others use goose too.
const versionTable = "petstore_migrations"

// The advisory lock of upgrades, in the class "PETS" of this program. Package store has others.
const (
	lockClass     = 0x50455453
	migrationLock = 1
)

// Migrate upgrades the schema of a database to the version of this program. It returns
// the versions before, 0 for an empty database, and after.
func Migrate(ctx context.Context, url string) (from, to int64, err error) {
	return migrate(ctx, url, ownMigrations)
}

func migrate(ctx context.Context, url string, files fs.FS) (from, to int64, err error) {
	config, err := parse(url)
	if err != nil {
		return 0, 0, err
	}
	from, latest, err := prepare(ctx, config, Options{}.withDefaults(), files)
	return from, max(from, latest), err
}

// prepare upgrades the database if it needs it and o allows it. It returns the version that
// the database had, and the one that this program knows.
func prepare(ctx context.Context, config *pgxpool.Config, o Options, files fs.FS) (from, latest int64, err error) {
	d := target{name: nameOf(config), db: stdlib.OpenDB(*config.ConnConfig), timeout: o.Timeout}
	defer d.db.Close()
	// Goose's registry and its log are global, so they are not used.
	d.provider, err = goose.NewProvider(goose.DialectPostgres, d.db, files, goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		return 0, 0, fmt.Errorf("read migrations: %w", err)
	}
	sources := d.provider.ListSources()
	d.latest = sources[len(sources)-1].Version
	from, err = d.inspect(ctx)
	switch {
	case err != nil || from >= d.latest:
		return from, d.latest, err
	case o.NoMigrate:
		return 0, 0, fmt.Errorf("open %s: its schema is version %d and this program needs %d; run petstore migrate", d.name, from, d.latest)
	}
	from, err = d.upgrade(ctx, o.OnUpgrade)
	return from, d.latest, err
}

// A target is a database to migrate.
type target struct {
	name     string
	db       *sql.DB
	provider *goose.Provider
	latest   int64         // version of the schema that this program knows
	timeout  time.Duration // of what only reads
}

const inspectText = `
	WITH tables AS (
		SELECT c.relname AS name FROM pg_class AS c
		WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND c.relkind IN ('r', 'p')
		AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
	)
	SELECT current_setting('server_encoding'), current_schema(),
		EXISTS (SELECT FROM tables WHERE name = 'petstore_migrations'),
		EXISTS (SELECT FROM tables WHERE name = 'petstore_schema'),
		EXISTS (SELECT FROM tables)`

// inspect returns the version of the schema, 0 if there is none. It only reads. It refuses a
// database of another program, or one that this program is too old for. It waits for no longer
// than a call does: a pooler can take minutes to say that it has no connection.
func (d target) inspect(ctx context.Context) (version int64, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var in sql.NullString
	var encoding string
	var versioned, ready, foreign bool
	if err := d.db.QueryRowContext(ctx, inspectText).Scan(&encoding, &in, &versioned, &ready, &foreign); err != nil {
		return 0, d.explain("open", err)
	}
	switch {
	case encoding != "UTF8" && encoding != "SQL_ASCII": // the latter stores any bytes
		return 0, fmt.Errorf("open %s: its encoding is %s, which does not have all characters; create the database with ENCODING 'UTF8'", d.name, encoding)
	case !in.Valid:
		return 0, fmt.Errorf("open %s: there is no schema of the search_path that this user may use; create it first", d.name)
	case !versioned && foreign:
		return 0, fmt.Errorf("open %s: the schema %s has tables of another program; choose another database, or another schema with search_path", d.name, in.String)
	case !versioned || !ready:
		return 0, nil
	}
	var oldest int64 // the oldest version whose programs work with the schema
	if err := d.db.QueryRowContext(ctx, `
		SELECT (SELECT coalesce(max(version_id), 0) FROM petstore_migrations WHERE is_applied), oldest FROM petstore_schema`,
	).Scan(&version, &oldest); err != nil {
		return 0, d.explain("open", err)
	}
	if oldest > d.latest {
		return 0, fmt.Errorf("open %s: a newer version of this program changed it (schema %d, which needs programs of schema %d or later; this one knows %d); use the newer version",
			d.name, version, oldest, d.latest)
	}
	return version, nil
}

// upgrade applies what is missing, while no other process does, and returns the version that
// was there before.
func (d target) upgrade(ctx context.Context, onUpgrade func(from, to int64)) (from int64, err error) {
	// The lock of a transaction, because a pooler gives the statements of a session to
	// several connections. Its connection is idle while another one works.
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return 0, d.explain("upgrade", err)
	}
	defer tx.Rollback()
	for _, text := range []string{
		"SET LOCAL idle_in_transaction_session_timeout = 0",
		fmt.Sprintf("SELECT pg_advisory_xact_lock(%d, %d)", lockClass, migrationLock),
	} {
		if _, err := tx.ExecContext(ctx, text); err != nil {
			return 0, d.explain("upgrade", err)
		}
	}
	from, err = d.inspect(ctx)
	if err != nil || from >= d.latest { // another process was faster
		return from, err
	}
	if from > 0 && onUpgrade != nil {
		onUpgrade(from, d.latest)
	}
	if _, err = d.provider.Up(ctx); err != nil {
		return 0, d.explain("upgrade", err)
	}
	return from, nil
}

// explain returns an error that says what failed and what an operator can do. An error that is
// not an answer of PostgreSQL is temporary.
func (d target) explain(doing string, err error) error {
	if state(err) == "" && !errors.Is(err, context.Canceled) {
		err = fmt.Errorf("%w: %w", errNoConnection, err)
	}
	return explain(doing+" "+d.name, err)
}
