package cli

import (
	"github.com/animalstore/gatehouse/reference/internal/config"
	"github.com/animalstore/gatehouse/reference/internal/database"
)

// The tools for PostgreSQL, by the command that is only for SQLite.
const (
	insteadOfBackup  = "petstore backup copies SQLite files; for PostgreSQL use pg_dump, or pg_basebackup with continuous archiving"
	insteadOfCheck   = "petstore check examines SQLite files; for PostgreSQL use pg_amcheck"
	insteadOfRestore = "petstore restore replaces SQLite files; for PostgreSQL use pg_restore, and then revoke the keys that were revoked since the backup"
)

// sqliteFlags are for commands that are only for SQLite.
type sqliteFlags struct {
	configFlag
	Database *string `placeholder:"FILE" help:"The SQLite file ($$PETSTORE_DATABASE)."`
}

// load returns the settings. If the database is PostgreSQL, the error says what to use
// instead.
func (f sqliteFlags) load(instead string) (*config.Config, error) {
	c, err := databaseFlags(f).load()
	if err == nil && database.IsPostgres(c.Database) {
		err = usageError{c.Errorf("database", "%s", instead)}
	}
	return c, err
}
