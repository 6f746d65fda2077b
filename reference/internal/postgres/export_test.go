package postgres

import (
	"context"
	"io/fs"
)

// OpenVersion is Open of a program with other migrations.
func OpenVersion(ctx context.Context, url string, o Options, files fs.FS) (*Store, error) {
	return open(ctx, url, o.withDefaults(), files)
}

// MigrateVersion is Migrate of a program with other migrations.
func MigrateVersion(ctx context.Context, url string, files fs.FS) (from, to int64, err error) {
	return migrate(ctx, url, files)
}

// Migrations returns the files of the migrations.
func Migrations() fs.FS { return ownMigrations }

// Connect makes connections until the pool has n.
func (s *Store) Connect(ctx context.Context, n int) error {
	for range n {
		conn, err := s.pool.Acquire(ctx)
		if err != nil {
			return err
		}
		defer conn.Release()
	}
	return nil
}
