// Package database opens the database that the setting database names: a SQLite file, or
// PostgreSQL.
//
//	db, err := database.Open(ctx, settings.Database, database.Options{})
//	...
//	logger.Info("serving", "database", database.Redacted(settings.Database))
//
// The name of a database can have a password. Logs and messages show [Redacted] of it, and
// no error of this package has the password.
package database

import (
	"context"
	"errors"
	"path/filepath"
	"regexp"
	"strings"
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

// An Upgrade describes the upgrade of an older schema. There is no copy of a PostgreSQL database.
type Upgrade = sqlite.Upgrade

// Open opens the database with this name, which [Check] accepts. It creates a SQLite file that
// does not exist, and the tables in a database that has none. The error wraps
// [store.ErrUnavailable] if PostgreSQL cannot be reached now, so that a later call can succeed.
func Open(ctx context.Context, name string, o Options) (store.Store, error) {
	if IsPostgres(name) {
		return opened(postgres.Open(ctx, name, o.postgres(name)))
	}
	return opened(sqlite.Open(ctx, name, o.sqlite()))
}

// Migrate creates or upgrades the schema of a database, and returns its versions before
// and after. From is 0 if there was none. It returns the errors of Open.
func Migrate(ctx context.Context, name string, o Options) (from, to int64, err error) {
	if IsPostgres(name) {
		return postgres.Migrate(ctx, name)
	}
	return sqlite.Migrate(ctx, name, o.sqlite())
}

// opened returns a nil interface, rather than one with a nil pointer, if there is an error.
func opened[S store.Store](s S, err error) (store.Store, error) {
	if err != nil {
		return nil, err
	}
	return s, nil
}

func (o Options) postgres(name string) postgres.Options {
	options := postgres.Options{NoMigrate: o.NoMigrate, Timeout: o.Timeout}
	if o.OnUpgrade != nil {
		options.OnUpgrade = func(from, to int64) { o.OnUpgrade(Upgrade{Database: Redacted(name), From: from, To: to}) }
	}
	return options
}

func (o Options) sqlite() sqlite.Options {
	return sqlite.Options{NoMigrate: o.NoMigrate, OnUpgrade: o.OnUpgrade}
}

// host is the pattern of one host in a URL, with or without a port. It may be empty: then
// the host is in PGHOST, in the query, or the default.
const host = `(?:[\w.~%-]*|\[[\w:.%]+\])(?::\d*)?`

// postgresURL is the pattern of a URL of PostgreSQL. Its groups are the user, the password,
// the hosts, the path and the query. No part of a password can end up in another group: a
// character that would end the password too early leaves an @ where the pattern allows
// none.
var postgresURL = regexp.MustCompile(`^postgres(?:ql)?://(?:([^:@/?#\s]*)(?::([^/?#\s]*))?@)?(` + host + `(?:,` + host + `)*)(/[^/@?#\s]*)?(\?[^@#\s]*)?$`)

// keyword is how a connection string of libpq in its other form begins.
var keyword = regexp.MustCompile(`(?:^|\s)(?:host|hostaddr|port|dbname|user|password|service|passfile)\s*=`)

// IsPostgres reports whether name is a URL of PostgreSQL. Any other name is the path of a
// SQLite file.
func IsPostgres(name string) bool {
	return strings.HasPrefix(name, "postgres://") || strings.HasPrefix(name, "postgresql://")
}

// Check returns an error if name is neither the name of a file nor a URL of PostgreSQL that
// says how to connect: see [postgres.Check]. The error follows the name of the setting, and does
// not have the password.
func Check(name string) error {
	switch {
	case name == "":
		return errors.New("must be a SQLite file such as petstore.db, or a postgres:// URL, got nothing")
	case strings.ContainsRune(name, 0):
		return errors.New("must not contain NUL")
	case IsPostgres(name) && !postgresURL.MatchString(name):
		return errors.New("must be a URL such as postgres://user:password@host:5432/database; " +
			"in the user, the password and the values after ? write other characters than letters, digits and - . _ ~ percent-encoded, such as %40 for @")
	case IsPostgres(name):
		return postgres.Check(name)
	case strings.Contains(name, "://"):
		return errors.New("must be a SQLite file such as petstore.db, or a postgres:// URL, got another URL")
	case keyword.MatchString(name):
		return errors.New("must be a SQLite file such as petstore.db, or a postgres:// URL, got keywords and values")
	}
	return nil
}

// Redacted returns name for logs and messages. Of a URL it has the user, the hosts and the
// database, and neither the password nor what comes after a question mark.
func Redacted(name string) string {
	if !IsPostgres(name) {
		return name
	}
	scheme, _, _ := strings.Cut(name, "://")
	m := postgresURL.FindStringSubmatch(name)
	if m == nil {
		return scheme + "://[redacted]"
	}
	user := m[1]
	if user != "" {
		user += "@"
	}
	return scheme + "://" + user + m[3] + m[4]
}

// HasPassword reports whether name is a URL with a password.
func HasPassword(name string) bool {
	m := postgresURL.FindStringSubmatch(name)
	return m != nil && (m[2] != "" || strings.Contains(m[5], "password="))
}

// UsagePath returns the default path of the file with the usage of the embedded limiter:
// beside a SQLite file, and "" for PostgreSQL, which has no place for one.
func UsagePath(name string) string {
	if IsPostgres(name) {
		return ""
	}
	if resolved, err := filepath.EvalSymlinks(name); err == nil {
		name = resolved // so that two names of one database have one usage file
	}
	return name + "-usage"
}

// Pool says how the connections to PostgreSQL are used.
type Pool = postgres.Stats

// PoolOf returns a function that reports the connections of a database that [Open]
// returned, or nil if it has none because it is a SQLite file. The function is safe for
// concurrent use.
func PoolOf(db store.Store) func() Pool {
	if p, ok := db.(*postgres.Store); ok {
		return p.Stats
	}
	return nil
}

// Imported says what [Import] has copied.
type Imported struct{ Pets, Keys int64 }

// Import copies everything in a SQLite file into the PostgreSQL database with this URL,
// all or nothing. It creates or upgrades the tables as [Open] does. The file is a backup or
// the file of a stopped server, and is not changed; see [sqlite.Export]. The error
// wraps [postgres.ErrNotEmpty] if the database has content, and [fs.ErrNotExist] if there is
// no file.
func Import(ctx context.Context, name, file string, by store.Actor, at time.Time, o Options) (n Imported, err error) {
	to, err := postgres.Open(ctx, name, o.postgres(name))
	if err != nil {
		return n, err
	}
	defer func() { err = errors.Join(err, to.Close()) }()
	err = sqlite.Export(ctx, file, func(x store.Export) error {
		copied, err := to.Import(ctx, x, by, at)
		n = Imported{Pets: copied["pets"], Keys: copied["keys"]}
		return err
	})
	return n, err
}
