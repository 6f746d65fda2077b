package persist

import (
	"context"
	"slices"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// batchSize is how many counts one write stores. Pets wait for the same writer, so a
// write must be short.
const batchSize = 256

// DeprecatedUse counts the use of deprecated operations by owner until the counts are
// saved. [NewDeprecatedUse] returns one. It is safe for concurrent use. It holds one
// count for each operation, owner and UTC day since the last save.
type DeprecatedUse struct {
	now func() time.Time

	mu     sync.Mutex
	counts map[use]tally
}

type use struct {
	operation, owner string
	day              int64 // Unix seconds
}

type tally struct {
	count int64
	last  time.Time
}

// NewDeprecatedUse returns an empty DeprecatedUse. The clock is usually [time.Now].
func NewDeprecatedUse(now func() time.Time) *DeprecatedUse {
	return &DeprecatedUse{now: now, counts: map[use]tally{}}
}

// Count counts one request of an owner for an operation.
func (d *DeprecatedUse) Count(operation, owner string) {
	now := d.now()
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(newUse(operation, owner, now), tally{1, now})
}

func newUse(operation, owner string, at time.Time) use {
	return use{operation, owner, store.Day(at).Unix()}
}

// add needs d.mu.
func (d *DeprecatedUse) add(u use, t tally) {
	sum := d.counts[u]
	sum.count += t.count
	if t.last.After(sum.last) {
		sum.last = t.last
	}
	d.counts[u] = sum
}

// Task returns the task that adds the counts to those in db. If the outcome of a
// commit is unknown, its counts may be added twice.
func (d *DeprecatedUse) Task(db store.DeprecatedUses) Task {
	return Task{Name: "deprecated use", Save: func(ctx context.Context) error { return d.save(ctx, db) }}
}

func (d *DeprecatedUse) save(ctx context.Context, db store.DeprecatedUses) error {
	d.mu.Lock()
	counts := d.counts
	d.counts = map[use]tally{}
	d.mu.Unlock()

	uses := make([]store.DeprecatedUse, 0, len(counts))
	for u, t := range counts {
		uses = append(uses, store.DeprecatedUse{Operation: u.operation, Owner: u.owner, Count: t.count, Last: t.last})
	}
	for batch := range slices.Chunk(uses, batchSize) {
		if err := db.AddDeprecatedUse(ctx, batch...); err != nil {
			d.restore(counts)
			return err
		}
		for _, u := range batch {
			delete(counts, newUse(u.Operation, u.Owner, u.Last))
		}
	}
	return nil
}

// restore adds counts that were not saved, for the next save.
func (d *DeprecatedUse) restore(counts map[use]tally) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for u, t := range counts {
		d.add(u, t)
	}
}
