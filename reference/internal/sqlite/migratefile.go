package sqlite

import (
	"context"
	"errors"
	"io/fs"
)

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
