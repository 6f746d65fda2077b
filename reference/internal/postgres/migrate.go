package postgres

import (
	"context"
	"database/sql"
	"embed"
	"fmt"
	"io/fs"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

//go:embed migrations
var migrationFiles embed.FS

// versionTable has the migrations that were applied. Its name is that of this program,
// because others use goose too.
const versionTable = "petstore_migrations"

// Advisory locks of this program, in the class lockClass.
const (
	lockClass     = 0x50455453 // "PETS"
	migrationLock = 1
	auditLock     = 2
)

// migrations are those of one version of this program.
type migrations struct{ files fs.FS }

func ownMigrations() migrations {
	files, err := fs.Sub(migrationFiles, "migrations")
	if err != nil {
		panic(err) // the name is a constant
	}
	return migrations{files}
}

// Migrate upgrades the schema of a database to the version of this program. It returns
// the versions before, 0 for an empty database, and after.
func Migrate(ctx context.Context, url string) (from, to int64, err error) {
	return ownMigrations().migrate(ctx, url)
}

func (m migrations) migrate(ctx context.Context, url string) (from, to int64, err error) {
	config, err := parse(url)
	if err != nil {
		return 0, 0, err
	}
	from, latest, err := m.prepare(ctx, config, Options{}.withDefaults())
	return from, max(from, latest), err
}

// prepare upgrades the database if it needs it and o allows it. It returns the version that
// the database had, and the one that this program knows.
func (m migrations) prepare(ctx context.Context, config *pgxpool.Config, o Options) (from, latest int64, err error) {
	d, err := m.open(config, o)
	if err != nil {
		return 0, 0, err
	}
	defer d.db.Close()
	s, err := d.inspect(ctx)
	switch {
	case err != nil:
		return 0, 0, err
	case s.version >= d.latest:
		return s.version, d.latest, d.compatible(s)
	case o.NoMigrate:
		return 0, 0, fmt.Errorf("open %s: its schema is version %d and this program needs %d; run petstore migrate", d.name, s.version, d.latest)
	}
	s, err = d.upgrade(ctx, o.OnUpgrade)
	return s.version, d.latest, err
}

// A target is a database to migrate.
type target struct {
	name     string
	db       *sql.DB
	provider *goose.Provider
	latest   int64
	timeout  time.Duration // of what only reads
}

func (m migrations) open(config *pgxpool.Config, o Options) (target, error) {
	connConfig := config.ConnConfig.Copy()
	d := target{name: nameOf(config), db: stdlib.OpenDB(*connConfig), timeout: o.Timeout}
	d.db.SetMaxOpenConns(2) // one for the lock
	// Goose's registry and its log are global, so they are not used.
	var err error
	d.provider, err = goose.NewProvider(goose.DialectPostgres, d.db, m.files, goose.WithTableName(versionTable),
		goose.WithDisableGlobalRegistry(true), goose.WithLogger(goose.NopLogger()))
	if err != nil {
		d.db.Close()
		return target{}, fmt.Errorf("read migrations: %w", err)
	}
	sources := d.provider.ListSources()
	d.latest = sources[len(sources)-1].Version
	return d, nil
}

// A schema is what a database has of this program.
type schema struct {
	version int64 // 0: nothing
	oldest  int64 // the oldest version whose programs work with it
}

// inspect only reads. It refuses a database of another program. It waits for no longer than
// a call does: a pooler can take minutes to say that it has no connection.
func (d target) inspect(ctx context.Context) (s schema, err error) {
	ctx, cancel := context.WithTimeout(ctx, d.timeout)
	defer cancel()
	var in sql.NullString
	var encoding string
	var versioned, ready, foreign bool
	if err := d.db.QueryRowContext(ctx, `
		WITH tables AS (
			SELECT c.relname AS name FROM pg_class AS c
			WHERE c.relnamespace = (SELECT oid FROM pg_namespace WHERE nspname = current_schema()) AND c.relkind IN ('r', 'p')
			AND NOT EXISTS (SELECT FROM pg_depend AS d WHERE d.classid = 'pg_class'::regclass AND d.objid = c.oid AND d.deptype = 'e')
		)
		SELECT current_setting('server_encoding'), current_schema(),
			EXISTS (SELECT FROM tables WHERE name = 'petstore_migrations'),
			EXISTS (SELECT FROM tables WHERE name = 'petstore_schema'),
			EXISTS (SELECT FROM tables)`,
	).Scan(&encoding, &in, &versioned, &ready, &foreign); err != nil {
		return schema{}, d.explain("open", err)
	}
	switch {
	case encoding != "UTF8" && encoding != "SQL_ASCII": // the latter stores any bytes
		return schema{}, fmt.Errorf("open %s: its encoding is %s, which does not have all characters; create the database with ENCODING 'UTF8'", d.name, encoding)
	case !in.Valid:
		return schema{}, fmt.Errorf("open %s: there is no schema of the search_path that this user may use; create it first", d.name)
	case !versioned && foreign:
		return schema{}, fmt.Errorf("open %s: the schema %s has tables of another program; choose another database, or another schema with search_path", d.name, in.String)
	case !versioned || !ready:
		return schema{}, nil
	}
	if err := d.db.QueryRowContext(ctx, `
		SELECT (SELECT coalesce(max(version_id), 0) FROM petstore_migrations WHERE is_applied), oldest FROM petstore_schema`,
	).Scan(&s.version, &s.oldest); err != nil {
		return schema{}, d.explain("open", err)
	}
	return s, nil
}

// compatible returns an error if this program is too old for the schema.
func (d target) compatible(s schema) error {
	if s.oldest <= d.latest {
		return nil
	}
	return fmt.Errorf("open %s: a newer version of this program changed it (schema %d, which needs programs of schema %d or later; this one knows %d); use the newer version",
		d.name, s.version, s.oldest, d.latest)
}

// upgrade applies what is missing, while no other process does, and returns what was
// there before.
func (d target) upgrade(ctx context.Context, onUpgrade func(from, to int64)) (before schema, err error) {
	// The lock of a transaction, because a pooler gives the statements of a session to
	// several connections.
	tx, err := d.db.BeginTx(ctx, nil)
	if err != nil {
		return schema{}, d.explain("upgrade", err)
	}
	defer tx.Rollback()
	if _, err := tx.ExecContext(ctx, "SET LOCAL idle_in_transaction_session_timeout = 0"); err != nil {
		return schema{}, d.explain("upgrade", err)
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("SELECT pg_advisory_xact_lock(%d, %d)", lockClass, migrationLock)); err != nil {
		return schema{}, d.explain("upgrade", err)
	}
	before, err = d.inspect(ctx)
	switch {
	case err != nil:
		return schema{}, err
	case before.version >= d.latest: // another process was faster
		return before, d.compatible(before)
	case before.version > 0 && onUpgrade != nil:
		onUpgrade(before.version, d.latest)
	}
	err = d.apply(ctx, before.version)
	if err == nil {
		return before, nil
	}
	if _, lost := tx.ExecContext(ctx, "SELECT 1"); lost != nil && ctx.Err() == nil {
		return schema{}, fmt.Errorf("upgrade %s: %w: the connection with the lock was lost: %w", d.name, store.ErrUnavailable, oneLine{err})
	}
	if before.version > 0 && state(err) == insufficientPrivilege { // no grant lets others alter a table
		return schema{}, fmt.Errorf("upgrade %s: run petstore migrate as the owner of the tables: %w", d.name, oneLine{err})
	}
	return schema{}, d.explain("upgrade", err)
}

// apply applies what is missing. If a process has lost the connection that held the lock, it
// may still be doing the same: the step that it takes fails here, and is then done.
func (d target) apply(ctx context.Context, version int64) error {
	for {
		_, err := d.provider.Up(ctx)
		if err == nil {
			return nil
		}
		s, inspectErr := d.inspect(ctx)
		if inspectErr != nil || s.version <= version {
			return err
		}
		version = s.version
	}
}

// explain returns an error that says what failed and what an operator can do.
func (d target) explain(doing string, err error) error {
	return explainOpen(doing+" "+d.name, err)
}
