package persist

import (
	"context"
	"errors"
	"fmt"
	"iter"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// headerVersion is the first byte of the header that is saved with the records. The
// rest is the engine's secret, without which the records cannot be used.
const headerVersion = 1

// ErrDamaged is wrapped by the error of [Load] if the state cannot be read at all.
var ErrDamaged = errors.New("the saved usage is damaged")

var errNewer = errors.New("the saved usage is from a newer version; " +
	"use that version, or delete the usage file, which resets all quotas and ends all bans")

// A UsageLoader is the part of [store.Usage] that [Load] needs.
type UsageLoader interface {
	LoadUsage(ctx context.Context, load func(header []byte, portions iter.Seq[[]memory.Record]) error) error
}

// Load returns an engine with the state in db, or a new one if there is no state.
// Records that the engine cannot read are not loaded, and the second result counts
// them: a damaged record must not prevent a start. If nothing can be read, the error
// wraps [ErrDamaged]. The Secret of the options is ignored.
func Load(ctx context.Context, db UsageLoader, o memory.Options) (l *memory.Limiter, damaged int, err error) {
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
		l.MarkSaved()
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
func LimiterTask(l *memory.Limiter, db store.Usage) Task {
	header := append([]byte{headerVersion}, l.Secret()...)
	return Task{Name: "usage and bans", Save: func(ctx context.Context) error {
		if err := l.Save(func(records []memory.Record) error { return db.SaveUsage(ctx, header, records) }); err != nil {
			return err
		}
		return db.CompactUsage(ctx, l.Records)
	}}
}
