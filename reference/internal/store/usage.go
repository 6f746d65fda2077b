package store

import (
	"context"
	"iter"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Usage stores the state of the embedded rate limiter, which is usage and bans, across
// restarts. One server writes it at a time.
//
// It promises less than the other interfaces, because it is written every second: a
// save survives a crash of the process, but a crash of the machine may lose the latest
// saves, each as a whole.
type Usage interface {
	// SaveUsage replaces the header and stores the records, one after the other, all
	// of it or nothing. A record replaces the one with the same key. A record without
	// data deletes it. SaveUsage does not keep its arguments.
	SaveUsage(ctx context.Context, header []byte, records []memory.Record) error

	// PruneUsage removes some of the records that have expired at an instant. It takes
	// a short time, and each call continues where the last one stopped.
	PruneUsage(ctx context.Context, now time.Time) error

	// LoadUsage calls load once, with the header that was saved last and all records,
	// in any order and as of one instant. The header is nil if nothing was ever saved.
	//
	// The sequence can be ranged over once, before load returns. It ends early at an
	// error, which LoadUsage then returns. LoadUsage also returns the error of load. The
	// data of the records belongs to the caller.
	LoadUsage(ctx context.Context, load func(header []byte, records iter.Seq[memory.Record]) error) error
}
