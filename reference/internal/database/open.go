package database

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/postgres"
	"github.com/animalstore/gatehouse/reference/internal/sqlite"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Options are optional settings. The zero value works.
type Options struct {
	// NoMigrate refuses a database with an older schema, or without one, instead of
	// upgrading it. [Migrate] ignores it.
	NoMigrate bool

	// Timeout is how long a call waits for a connection to PostgreSQL at most, and then
	// for the answer, if its context allows that. A write that has begun ignores the end
	// of its context. Zero: the default of package postgres.
	Timeout time.Duration

	// OnUpgrade is called before the schema of a database is upgraded.
	OnUpgrade func(Upgrade)
}

// An Upgrade is that of a database with an older schema.
type Upgrade struct {
	Database string // for messages, without a password
	From, To int64  // versions of the schema
	Copy     string // path of the copy of a SQLite file as it was before; "" for PostgreSQL
}

// A NameError is an error about the name of a database: a retry cannot fix it, and nothing
// was done.
type NameError struct{ Err error }

func (e *NameError) Error() string { return e.Err.Error() }

// Unwrap returns Err.
func (e *NameError) Unwrap() error { return e.Err }

// Open opens the database with this name. It creates a SQLite file that does not exist,
// and the tables in a database that has none. The error wraps [store.ErrUnavailable] if
// PostgreSQL cannot be reached now, so that a later call can succeed. It is a [*NameError]
// if name does not say how to reach it.
func Open(ctx context.Context, name string, o Options) (store.Store, error) {
	if IsPostgres(name) {
		if err := postgres.Check(name); err != nil {
			return nil, &NameError{err}
		}
		return opened(postgres.Open(ctx, name, o.postgres(name)))
	}
	return opened(sqlite.Open(ctx, name, o.sqlite()))
}

// Migrate creates or upgrades the schema of a database, and returns its versions before
// and after. From is 0 if there was none. The errors are those of Open.
func Migrate(ctx context.Context, name string, o Options) (from, to int64, err error) {
	if IsPostgres(name) {
		if err := postgres.Check(name); err != nil {
			return 0, 0, &NameError{err}
		}
		return postgres.Migrate(ctx, name)
	}
	return sqlite.Migrate(ctx, name, o.sqlite())
}

// opened returns no store, rather than a nil pointer, if there is an error.
func opened[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (o Options) postgres(name string) postgres.Options {
	options := postgres.Options{NoMigrate: o.NoMigrate, Timeout: o.Timeout}
	if o.OnUpgrade != nil {
		options.OnUpgrade = func(from, to int64) { o.OnUpgrade(Upgrade{Redacted(name), from, to, ""}) }
	}
	return options
}

func (o Options) sqlite() sqlite.Options {
	options := sqlite.Options{NoMigrate: o.NoMigrate}
	if o.OnUpgrade != nil {
		options.OnUpgrade = func(u sqlite.Upgrade) { o.OnUpgrade(Upgrade{u.File, u.From, u.To, u.Copy}) }
	}
	return options
}
