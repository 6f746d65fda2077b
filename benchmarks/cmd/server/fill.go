package main

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"path/filepath"

	_ "modernc.org/sqlite" // registers the driver
)

// fill adds pets and keys to the database in a directory, which petstore has created and
// no server uses. It bypasses the server, because a million requests take minutes.
func fill(ctx context.Context, dir string, pets, keys int) (err error) {
	name := (&url.URL{Scheme: "file", Path: filepath.Join(dir, "petstore.db"), RawQuery: "mode=rw"}).String()
	db, err := sql.Open("sqlite", name)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, db.Close()) }()
	const numbers = `WITH RECURSIVE numbers (n) AS (VALUES (1) UNION ALL SELECT n + 1 FROM numbers LIMIT ?) `
	if _, err := db.ExecContext(ctx, numbers+`INSERT INTO pets (name, category_id, status)
		SELECT 'Rex', 1 + n % 9, iif(n % 10 = 0, 'sold', iif(n % 10 = 1, 'pending', 'available')) FROM numbers`, pets); err != nil {
		return fmt.Errorf("adding pets: %w", err)
	}
	if keys == 0 {
		return nil
	}
	if _, err := db.ExecContext(ctx, numbers+`INSERT INTO keys (id, digest, last_four, name, owner, plan, quotas, created)
		SELECT printf('key_%016d', n), randomblob(32), printf('%04d', n % 10000), 'benchmark', 'owner ' || n, 'pro', '[]', 1e15 + n
		FROM numbers`, keys); err != nil {
		return fmt.Errorf("adding keys: %w", err)
	}
	return nil
}
