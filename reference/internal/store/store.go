package store

import (
	"context"
	"io"
)

// A Store is a whole database: everything but the limiter's state, which is
// kept apart because only a server with an embedded limiter has any.
type Store interface {
	Pets
	Keys
	DeprecatedUses

	// Ping reports whether the database can be read at present.
	Ping(ctx context.Context) error

	// Closer waits for the writes under way and closes the database. Calls that
	// come later fail with [ErrUnavailable].
	io.Closer
}
