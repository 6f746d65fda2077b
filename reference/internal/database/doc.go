// Package database opens the database that the setting database names: a SQLite file, or
// PostgreSQL.
//
//	db, err := database.Open(ctx, settings.Database, database.Options{})
//	...
//	logger.Info("serving", "database", database.Redacted(settings.Database))
//
// The name of a database can have a password. [Redacted] is what logs and messages show;
// no error of this package has more.
package database
