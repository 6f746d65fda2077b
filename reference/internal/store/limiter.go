package store

import (
	"context"
	"errors"
	"fmt"
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

// headerVersion is the first byte of the header that is saved with the records. The
// rest is the engine's secret, without which the records cannot be used.
const headerVersion = 1

// ErrDamaged is wrapped by the error of [LoadLimiter] if the state cannot be read at all.
var ErrDamaged = errors.New("the saved usage is damaged")

var errNewer = errors.New("the saved usage is from a newer version; " +
	"use that version, or delete the usage file, which resets all quotas and ends all bans")

// LoadLimiter returns an engine with the state in db, or a new one if there is no state.
// Records that the engine cannot read are not loaded, and the second result counts
// them: a damaged record must not prevent a start. If nothing can be read, the error
// wraps [ErrDamaged]. The Secret of the options is ignored.
func LoadLimiter(ctx context.Context, db Usage, o memory.Options) (l *memory.Limiter, damaged int, err error) {
	err = db.LoadUsage(ctx, func(header []byte, portions iter.Seq[[]memory.Record]) error {
		if o.Secret, err = secretFrom(header); err != nil {
			return err
		}
		if l, err = memory.New(o); err != nil {
			return fmt.Errorf("%w (%w)", ErrDamaged, err)
		}
		for portion := range portions {
			damaged += loadPortion(l, portion)
		}
		return nil
	})
	if err != nil {
		return nil, 0, err
	}
	return l, damaged, nil
}

func secretFrom(header []byte) ([]byte, error) {
	switch {
	case len(header) == 0:
		return nil, nil // no state was ever saved
	case header[0] > headerVersion:
		return nil, errNewer
	case header[0] != headerVersion || len(header) == 1:
		return nil, ErrDamaged
	}
	return header[1:], nil
}

func loadPortion(l *memory.Limiter, records []memory.Record) (damaged int) {
	if l.Load(records) == nil {
		return 0
	}
	// Load stops at the first record that it cannot read. Loading the ones before it
	// again changes nothing.
	for i := range records {
		if l.Load(records[i:i+1]) != nil {
			damaged++
		}
	}
	return damaged
}

// LimiterTask returns the task that saves the changes of an engine to db, and replaces
// some of what is there, so that db does not grow.
func LimiterTask(l *memory.Limiter, db Usage) SaveTask {
	header := append([]byte{headerVersion}, l.Secret()...)
	return SaveTask{Name: "usage and bans", Save: func(ctx context.Context) error {
		if err := l.Save(func(records []memory.Record) error { return db.SaveUsage(ctx, header, records) }); err != nil {
			return err
		}
		return db.CompactUsage(ctx, l.Records)
	}}
}
