package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// withDatabase opens the database for do and closes it afterwards. It creates a
// database only if create is true.
func withDatabase(ctx context.Context, settings *config.Config, create bool, do func(store.Store) error) (err error) {
	missing := isMissingFile(settings.Database)
	if missing && !create {
		return fmt.Errorf("database %s does not exist; choose another with --database, "+
			"or create it with petstore serve or petstore keys create", settings.Database)
	}
	db, err := database.Open(ctx, settings.Database, database.Options{
		NoMigrate: settings.Migrate == config.MigrateManual, OnUpgrade: sayUpgrade,
	})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	if missing {
		sayCreated(settings.Database)
	}
	return do(db)
}

// isMissingFile reports whether a database is a SQLite file that does not exist.
func isMissingFile(name string) bool {
	if database.IsPostgres(name) {
		return false
	}
	_, err := os.Stat(name)
	return errors.Is(err, os.ErrNotExist)
}

// sayCreated reports that a database was created, with its directory: the server does not find
// the database, nor the keys in it, in another directory than its own.
func sayCreated(file string) {
	fmt.Fprintf(os.Stderr, "Created database %s.\n", fullName(file))
}

// fullName returns the name of a database without its password, and of a file with its directory.
func fullName(name string) string {
	if database.IsPostgres(name) {
		return database.Redacted(name)
	}
	if full, err := filepath.Abs(name); err == nil {
		return full
	}
	return name
}

// sayUpgrade reports that an upgrade of the database begins, and where a copy of the older
// one is.
func sayUpgrade(u database.Upgrade) {
	fmt.Fprintf(os.Stderr, "Upgrading database %s from schema %d to %d.\n", u.Database, u.From, u.To)
	if u.Copy != "" {
		fmt.Fprintf(os.Stderr, "A copy of the older one is %s.\n", u.Copy)
	}
}

// The tools for PostgreSQL, by the command that is only for SQLite.
const (
	insteadOfBackup  = "petstore backup copies SQLite files; for PostgreSQL use pg_dump, or pg_basebackup with continuous archiving"
	insteadOfRestore = "petstore restore replaces SQLite files; for PostgreSQL use pg_restore, and then revoke the keys that were revoked since the backup"
)

// loadSQLite is load for a command that is only for SQLite. If the database is PostgreSQL, the
// error says what to use instead.
func (f databaseFlags) loadSQLite(instead string) (*config.Config, error) {
	c, err := f.load()
	if err == nil && database.IsPostgres(c.Database) {
		err = usageError{c.Errorf("database", "%s", instead)}
	}
	return c, err
}
