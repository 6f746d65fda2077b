package store

import (
	"context"
	"iter"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Usage keeps the state of the embedded rate limiter, usage and bans alike,
// across a restart. One server writes it at a time.
//
// It promises less than the other interfaces, because it is written every
// second and can be earned again: what was saved survives a crash of the
// process, but a crash of the machine may lose the latest saves, each of them
// as a whole.
type Usage interface {
	// SaveUsage replaces the header and stores the records, one after the other, all
	// of it or nothing. A record replaces the one with the same key. A record without
	// data deletes it. SaveUsage does not keep its arguments.
	SaveUsage(ctx context.Context, header []byte, records []memory.Record) error

	// PruneUsage removes records that have expired at an instant, as many as can
	// be found in a short time. Each call goes on where the last one stopped, so
	// that all are met in turn.
	PruneUsage(ctx context.Context, now time.Time) error

	// LoadUsage calls load once, with the header that was saved last and all the
	// records, in no stated order and as of one instant. The header is nil if
	// nothing was ever saved.
	//
	// The sequence can be ranged over once, before load returns. It ends early
	// at an error, which LoadUsage then returns, as it does load's own. The
	// records' data belongs to the caller.
	LoadUsage(ctx context.Context, load func(header []byte, records iter.Seq[memory.Record]) error) error
}
