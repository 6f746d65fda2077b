package usage

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// usesPortion is how many counts are stored at a time. They share the writer with
// the pets, which should not wait long.
const usesPortion = 256

// Deprecated counts the use of deprecated operations by owner, until the counts are
// saved. It
// is made by [NewDeprecated] and safe for concurrent use. It holds as many counts
// as owners used an operation since the last save.
type Deprecated struct {
	now func() time.Time

	mu     sync.Mutex
	counts map[use]tally
}

type use struct{ operation, owner string }

type tally struct {
	count int64
	last  time.Time
}

// NewDeprecated returns a count of nothing. The clock is usually [time.Now].
func NewDeprecated(now func() time.Time) *Deprecated {
	return &Deprecated{now: now, counts: map[use]tally{}}
}

// Count counts one request of an owner for an operation.
func (d *Deprecated) Count(operation, owner string) {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(use{operation, owner}, tally{1, now})
}

// add needs d.mu.
func (d *Deprecated) add(u use, t tally) {
	sum := d.counts[u]
	sum.count += t.count
	if t.last.After(sum.last) {
		sum.last = t.last
	}
	d.counts[u] = sum
}

// Task returns the task of adding the counts to those in db. If a commit fails
// without it being known whether it took place, they may be added twice.
func (d *Deprecated) Task(db store.DeprecatedUses) Task {
	return Task{Name: "deprecated use", Save: func(ctx context.Context) error { return d.save(ctx, db) }}
}

func (d *Deprecated) save(ctx context.Context, db store.DeprecatedUses) error {
	d.mu.Lock()
	counts := d.counts
	d.counts = map[use]tally{}
	d.mu.Unlock()

	uses := make([]store.DeprecatedUse, 0, len(counts))
	for u, t := range counts {
		uses = append(uses, store.DeprecatedUse{Operation: u.operation, Owner: u.owner, Count: t.count, Last: t.last})
	}
	for portion := range slices.Chunk(uses, usesPortion) {
		if err := db.AddDeprecatedUse(ctx, portion...); err != nil {
			d.takeBack(counts)
			return err
		}
		for _, u := range portion {
			delete(counts, use{u.Operation, u.Owner})
		}
	}
	return nil
}

// takeBack has counts saved the next time.
func (d *Deprecated) takeBack(counts map[use]tally) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for u, t := range counts {
		d.add(u, t)
	}
}
