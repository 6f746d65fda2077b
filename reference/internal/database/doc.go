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
