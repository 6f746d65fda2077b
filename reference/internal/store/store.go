package store

import (
	"context"
	"io"
)

// A Store is a whole database, without the state of the limiter, which only a server
// with an embedded limiter has.
type Store interface {
	Pets
	Keys
	Audits
	DailyUses
	DeprecatedUses

	// Ping returns an error if the database cannot be read.
	Ping(ctx context.Context) error

	// Closer waits for running writes and closes the database. Later calls fail with
	// [ErrUnavailable].
	io.Closer
}
