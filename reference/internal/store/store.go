package store

import (
	"context"
	"io"
)

// A Store is a whole database. The state of an embedded limiter is not part of it: see
// [Usage].
type Store interface {
	Pets
	Keys
	Audits
	DailyUses
	DeprecatedUses

	// Ping returns an error if the database cannot be used now.
	Ping(ctx context.Context) error

	// Closer waits for running writes and closes the database. Later calls fail with
	// [ErrUnavailable].
	io.Closer
}
