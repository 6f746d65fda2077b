package store

import (
	"context"
	"iter"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// Usage stores the state of the embedded rate limiter, which is usage and bans, across
// restarts. One server writes it at a time.
//
// It promises less than the other interfaces, because it is written twice a second: a
// save survives a crash of the process, but a crash of the machine may lose the latest
// saves, each as a whole.
type Usage interface {
	// SaveUsage replaces the header and stores the records, one after the other, all
	// of it or nothing. A record replaces the one with the same key. A record without
	// data deletes it. SaveUsage does not keep its arguments.
	SaveUsage(ctx context.Context, header []byte, records []memory.Record) error

	// CompactUsage replaces some of what was saved, so that less is kept and loaded.
	// The function all must return all records with keys from first to last that are
	// to be kept, as of now; those that it does not return are deleted. CompactUsage
	// is called after saves, and takes about as long as they did.
	CompactUsage(ctx context.Context, all func(first, last uint64) []memory.Record) error

	// LoadUsage calls load once, with the header that was saved last and all records,
	// as of one instant. The header is nil if nothing was ever saved. Of several
	// records with one key the last counts, with data or without.
	//
	// The records come in portions. The sequence can be ranged over once, before load
	// returns. It ends early at an error, which LoadUsage then returns. LoadUsage also
	// returns the error of load. The portions belong to the caller. In place of
	// records that are damaged there is one whose data is a zero byte.
	LoadUsage(ctx context.Context, load func(header []byte, portions iter.Seq[[]memory.Record]) error) error
}
