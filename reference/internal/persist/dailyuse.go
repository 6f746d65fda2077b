package persist

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// dailyInterval is the time between two saves of daily use. It is long, because a save
// has a row for each owner that sent a request, and pets wait for the same writer.
const dailyInterval = 10 * time.Second

// DailyUse counts the requests of each owner by UTC day until the counts are saved.
// [NewDailyUse] returns one. It is safe for concurrent use. It holds one count for each
// owner and day since the last save. A process that is killed loses the counts of the
// last ten seconds.
type DailyUse struct {
	now func() time.Time

	saving chan struct{} // holds an element while a save or a list runs
	pruned time.Time     // the last day on which old days were removed; needs saving

	mu     sync.Mutex
	counts map[string][]store.DailyUse // by owner, in order of the days
}

// NewDailyUse returns an empty DailyUse. The clock is usually [time.Now].
func NewDailyUse(now func() time.Time) *DailyUse {
	return &DailyUse{now: now, saving: make(chan struct{}, 1), counts: map[string][]store.DailyUse{}}
}

// Count counts one request of an owner.
func (d *DailyUse) Count(owner string, allowed bool) {
	u := store.DailyUse{Owner: owner, Day: store.Day(d.now()), Denied: 1}
	if allowed {
		u.Allowed, u.Denied = 1, 0
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.add(u)
}

// add needs d.mu.
func (d *DailyUse) add(u store.DailyUse) {
	days, added := addDay(d.counts[u.Owner], u)
	if added {
		d.counts[u.Owner] = days
	}
}

// addDay adds the counts of a day to days, which are in order. It reports whether it
// added the day itself.
func addDay(days []store.DailyUse, u store.DailyUse) (_ []store.DailyUse, added bool) {
	i, found := slices.BinarySearchFunc(days, u, func(a, b store.DailyUse) int { return a.Day.Compare(b.Day) })
	if !found {
		return slices.Insert(days, i, u), true
	}
	days[i].Allowed += u.Allowed
	days[i].Denied += u.Denied
	return days, false
}

// List returns the days of an owner in db, as [store.DailyUses] says, together with
// the requests that are not saved yet. It waits for a running save.
func (d *DailyUse) List(ctx context.Context, db store.DailyUses, owner string, since time.Time) ([]store.DailyUse, error) {
	if err := d.lock(ctx); err != nil {
		return nil, err
	}
	defer d.unlock()
	days, err := db.ListDailyUse(ctx, owner, since)
	if err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range d.counts[owner] {
		if !u.Day.Before(store.Day(since)) {
			days, _ = addDay(days, u)
		}
	}
	return days, nil
}

// lock waits until no save or list runs.
func (d *DailyUse) lock(ctx context.Context) error {
	select {
	case d.saving <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (d *DailyUse) unlock() { <-d.saving }

// Task returns the task that adds the counts to those in db, every ten seconds, and
// once a day removes those that are older than [store.KeepDays]. If the outcome of a
// commit is unknown, its counts may be added twice.
func (d *DailyUse) Task(db store.DailyUses) Task {
	return Task{Name: "daily use", Every: dailyInterval, Save: func(ctx context.Context) error { return d.save(ctx, db) }}
}

func (d *DailyUse) save(ctx context.Context, db store.DailyUses) error {
	if err := d.lock(ctx); err != nil {
		return err
	}
	defer d.unlock()
	d.mu.Lock()
	counts := d.counts
	d.counts = make(map[string][]store.DailyUse, len(counts))
	d.mu.Unlock()

	uses := make([]store.DailyUse, 0, len(counts))
	for _, days := range counts {
		uses = append(uses, days...)
	}
	// In the order of the table, its pages are found and written once.
	slices.SortFunc(uses, func(a, b store.DailyUse) int {
		return cmp.Or(a.Day.Compare(b.Day), cmp.Compare(a.Owner, b.Owner))
	})
	for len(uses) > 0 {
		batch := uses[:min(batchSize, len(uses))]
		if err := db.AddDailyUse(ctx, batch...); err != nil {
			d.restore(uses)
			return err
		}
		uses = uses[len(batch):]
	}
	return d.prune(ctx, db)
}

// restore adds counts that were not saved, for the next save.
func (d *DailyUse) restore(uses []store.DailyUse) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, u := range uses {
		d.add(u)
	}
}

// prune removes old days from db, once a day.
func (d *DailyUse) prune(ctx context.Context, db store.DailyUses) error {
	today := store.Day(d.now())
	if today.Equal(d.pruned) {
		return nil
	}
	if err := db.PruneDailyUse(ctx, today.AddDate(0, 0, 1-store.KeepDays)); err != nil {
		return err
	}
	d.pruned = today
	return nil
}
