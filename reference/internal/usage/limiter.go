package usage

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// headerVersion is the first octet of the header that is saved with the records.
// What follows it is the engine's secret, without which the records mean nothing.
const headerVersion = 1

// loadPortion is how many records are handed to the engine at a time.
const loadPortion = 4096

// ErrDamaged is wrapped by the error of [Load] if the state cannot be read at all.
var ErrDamaged = errors.New("the saved usage is damaged")

var errNewer = errors.New("the saved usage is from a newer version; " +
	"use that version, or delete the usage file, which resets all quotas and ends all bans")

// Load returns an engine that goes on where the one stopped whose state is in db,
// or a new one if there is no state. A record that the engine cannot read is left
// out, and counted in the second result: a damaged one must not keep the service
// from starting. If nothing can be read, the error wraps [ErrDamaged]. The Secret of
// the options is ignored.
func Load(ctx context.Context, db store.Usage, o memory.Options) (l *memory.Limiter, damaged int, err error) {
	err = db.LoadUsage(ctx, func(header []byte, records iter.Seq[memory.Record]) error {
		if o.Secret, err = secretFrom(header); err != nil {
			return err
		}
		if l, err = memory.New(o); err != nil {
			return fmt.Errorf("%w (%w)", ErrDamaged, err)
		}
		damaged = loadRecords(l, records)
		// What was loaded is saved already.
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
		return nil, nil // nothing was ever saved
	case header[0] > headerVersion:
		return nil, errNewer
	case header[0] != headerVersion || len(header) == 1:
		return nil, ErrDamaged
	}
	return header[1:], nil
}

func loadRecords(l *memory.Limiter, records iter.Seq[memory.Record]) (damaged int) {
	portion := make([]memory.Record, 0, loadPortion)
	load := func() {
		if l.Load(portion) != nil {
			// Load stops at the first record that it cannot read. To load those
			// before it again changes nothing.
			for i := range portion {
				if l.Load(portion[i:i+1]) != nil {
					damaged++
				}
			}
		}
		portion = portion[:0]
	}
	for r := range records {
		if portion = append(portion, r); len(portion) == loadPortion {
			load()
		}
	}
	load()
	return damaged
}

// LimiterTask returns the task of saving what changed in an engine to db, and of
// removing from db, a few at a time, the records that mean nothing any more.
func LimiterTask(l *memory.Limiter, db store.Usage, now func() time.Time) Task {
	header := append([]byte{headerVersion}, l.Secret()...)
	return Task{Name: "usage and bans", Save: func(ctx context.Context) error {
		if err := l.Save(func(records []memory.Record) error { return db.SaveUsage(ctx, header, records) }); err != nil {
			return err
		}
		return db.PruneUsage(ctx, now())
	}}
}
