package persist

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// headerVersion is the first byte of the header that is saved with the records. The
// rest is the engine's secret, without which the records cannot be used.
const headerVersion = 1

// loadBatch is how many records are passed to the engine at once.
const loadBatch = 4096

// ErrDamaged is wrapped by the error of [Load] if the state cannot be read at all.
var ErrDamaged = errors.New("the saved usage is damaged")

var errNewer = errors.New("the saved usage is from a newer version; " +
	"use that version, or delete the usage file, which resets all quotas and ends all bans")

// A UsageLoader is the part of [store.Usage] that [Load] needs.
type UsageLoader interface {
	LoadUsage(ctx context.Context, load func(header []byte, records iter.Seq[memory.Record]) error) error
}

// Load returns an engine with the state in db, or a new one if there is no state.
// Records that the engine cannot read are not loaded, and the second result counts
// them: a damaged record must not prevent a start. If nothing can be read, the error
// wraps [ErrDamaged]. The Secret of the options is ignored.
func Load(ctx context.Context, db UsageLoader, o memory.Options) (l *memory.Limiter, damaged int, err error) {
	err = db.LoadUsage(ctx, func(header []byte, records iter.Seq[memory.Record]) error {
		if o.Secret, err = secretFrom(header); err != nil {
			return err
		}
		if l, err = memory.New(o); err != nil {
			return fmt.Errorf("%w (%w)", ErrDamaged, err)
		}
		damaged = loadRecords(l, records)
		// The loaded records are saved already: forget that they are new.
		return l.Save(func([]memory.Record) error { return nil })
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

func loadRecords(l *memory.Limiter, records iter.Seq[memory.Record]) (damaged int) {
	batch := make([]memory.Record, 0, loadBatch)
	load := func() {
		if l.Load(batch) != nil {
			// Load stops at the first record that it cannot read. Loading the ones
			// before it again changes nothing.
			for i := range batch {
				if l.Load(batch[i:i+1]) != nil {
					damaged++
				}
			}
		}
		batch = batch[:0]
	}
	for r := range records {
		if batch = append(batch, r); len(batch) == loadBatch {
			load()
		}
	}
	load()
	return damaged
}

// LimiterTask returns the task that saves the changes of an engine to db and removes
// expired records from db, some at a time.
func LimiterTask(l *memory.Limiter, db store.Usage, now func() time.Time) Task {
	header := append([]byte{headerVersion}, l.Secret()...)
	return Task{Name: "usage and bans", Save: func(ctx context.Context) error {
		if err := l.Save(func(records []memory.Record) error { return db.SaveUsage(ctx, header, records) }); err != nil {
			return err
		}
		return db.PruneUsage(ctx, now())
	}}
}
