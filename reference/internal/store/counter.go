package store

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"
)

// batchSize is how many counts one write stores. Pets wait for the same writer, so a
// write must be short.
const batchSize = 256

// A counter adds up rows until they are saved, one row for each key.
type counter[K comparable, R any] struct {
	key func(R) K
	sum func(a, b R) R

	mu   sync.Mutex
	rows map[K]R
}

func newCounter[K comparable, R any](key func(R) K, sum func(a, b R) R) *counter[K, R] {
	return &counter[K, R]{key: key, sum: sum, rows: map[K]R{}}
}

func (c *counter[K, R]) add(rows ...R) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range rows {
		k := c.key(row)
		if sum, ok := c.rows[k]; ok {
			row = c.sum(sum, row)
		}
		c.rows[k] = row
	}
}

// save writes the rows in an order. Those that cannot be written stay for the next save.
func (c *counter[K, R]) save(ctx context.Context, order func(a, b R) int, write func(context.Context, ...R) error) error {
	c.mu.Lock()
	rows := slices.Collect(maps.Values(c.rows))
	c.rows = make(map[K]R, len(rows))
	c.mu.Unlock()

	slices.SortFunc(rows, order)
	for len(rows) > 0 {
		batch := rows[:min(batchSize, len(rows))]
		if err := write(ctx, batch...); err != nil {
			c.add(rows...)
			return err
		}
		rows = rows[len(batch):]
	}
	return nil
}

// dailyInterval is the time between two saves of daily use. It is long, because a save
// has a row for each owner that sent a request, and pets wait for the same writer.
const dailyInterval = 10 * time.Second

// A DailyCounter counts the requests of each owner by UTC day until the counts are saved.
// [NewDailyCounter] returns one. It is safe for concurrent use. It holds one count for
// each owner and day since the last save. A process that is killed loses the counts of
// the last ten seconds.
type DailyCounter struct {
	now    func() time.Time
	counts *counter[ownerDay, DailyUse]

	pruned time.Time // the last day on which old days were removed; for the task alone
}

type ownerDay struct {
	owner string
	day   int64 // Unix seconds
}

// NewDailyCounter returns an empty DailyCounter. The clock is usually [time.Now].
func NewDailyCounter(now func() time.Time) *DailyCounter {
	return &DailyCounter{now: now, counts: newCounter(
		func(u DailyUse) ownerDay { return ownerDay{u.Owner, u.Day.Unix()} },
		func(a, b DailyUse) DailyUse {
			a.Allowed, a.Denied = a.Allowed+b.Allowed, a.Denied+b.Denied
			return a
		})}
}

// Count counts one request of an owner.
func (d *DailyCounter) Count(owner string, allowed bool) {
	u := DailyUse{Owner: owner, Day: Day(d.now()), Denied: 1}
	if allowed {
		u.Allowed, u.Denied = 1, 0
	}
	d.counts.add(u)
}

// Task returns the task that adds the counts to those in db, every ten seconds, and
// once a day removes those that are older than [KeepDays]. It must not run twice at the same
// time. If the outcome of a commit is unknown, its counts may be added twice.
func (d *DailyCounter) Task(db DailyUses) SaveTask {
	return SaveTask{Name: "daily use", Every: dailyInterval, Save: func(ctx context.Context) error { return d.save(ctx, db) }}
}

func (d *DailyCounter) save(ctx context.Context, db DailyUses) error {
	// In the order of the table, its pages are found and written once.
	order := func(a, b DailyUse) int { return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Owner, b.Owner)) }
	if err := d.counts.save(ctx, order, db.AddDailyUse); err != nil {
		return err
	}
	today := Day(d.now())
	if today.Equal(d.pruned) {
		return nil
	}
	if err := db.PruneDailyUse(ctx, today.AddDate(0, 0, 1-KeepDays)); err != nil {
		return err
	}
	d.pruned = today
	return nil
}

// A DeprecatedCounter counts the use of deprecated operations by owner until the counts
// are saved. [NewDeprecatedCounter] returns one. It is safe for concurrent use. It holds
// one count for each operation, owner and UTC day since the last save.
type DeprecatedCounter struct {
	now    func() time.Time
	counts *counter[operationDay, DeprecatedUse]
}

type operationDay struct {
	operation string
	ownerDay
}

// NewDeprecatedCounter returns an empty DeprecatedCounter. The clock is usually
// [time.Now].
func NewDeprecatedCounter(now func() time.Time) *DeprecatedCounter {
	return &DeprecatedCounter{now: now, counts: newCounter(
		func(u DeprecatedUse) operationDay {
			return operationDay{u.Operation, ownerDay{u.Owner, Day(u.Last).Unix()}}
		},
		func(a, b DeprecatedUse) DeprecatedUse {
			a.Count += b.Count
			if b.Last.After(a.Last) {
				a.Last = b.Last
			}
			return a
		})}
}

// Count counts one request of an owner for an operation.
func (d *DeprecatedCounter) Count(operation, owner string) {
	d.counts.add(DeprecatedUse{Operation: operation, Owner: owner, Count: 1, Last: d.now()})
}

// Task returns the task that adds the counts to those in db. If the outcome of a
// commit is unknown, its counts may be added twice.
func (d *DeprecatedCounter) Task(db DeprecatedUses) SaveTask {
	order := func(a, b DeprecatedUse) int {
		return cmp.Or(cmp.Compare(a.Operation, b.Operation), cmp.Compare(a.Owner, b.Owner))
	}
	return SaveTask{Name: "deprecated use", Save: func(ctx context.Context) error {
		return d.counts.save(ctx, order, db.AddDeprecatedUse)
	}}
}
