package failover

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A journal has what the primary has not counted, by subject, until it is merged: requests
// that were admitted while it did not decide, and what changed the costs of requests. When it
// is full, it takes no more subjects.
type journal struct {
	primary engine.Adjuster // nil without a local engine: the journal is then empty
	bound   int             // of entries
	size    atomic.Int64    // the number of entries, to be read without the lock
	lost    atomic.Uint64

	mu      sync.Mutex
	entries map[string]*entry // by subject
}

// An entry has what the primary has not counted of one subject. The journal's lock guards
// it, and merging is a semaphore.
type entry struct {
	subject string
	merging chan struct{} // full while a goroutine merges the entry
	calls   []call        // in the order in which they are made, before the sums
	sums    []sum
	plan    *ratelimit.Plan // of the latest adjustment; any will do for the windows of others
	refused atomic.Bool     // by a primary that answered a probe
}

// A sum is what was charged to a fixed or calendar window, less what was given back.
type sum struct {
	window fixedwindow.Window
	added  int64
}

// A call is an adjustment that the primary may have made, or that ends a hold there. It is
// repeated as it is, since the primary takes another one with this id for a repetition.
type call struct {
	d    ratelimit.Decision
	cost int64 // the new one
	id   string
	sent int64 // when the primary was first asked, Unix nanoseconds; 0: it was not
	ends int64 // when the last of its windows does, Unix seconds
}

// added is by how much the cost changes.
func (c *call) added() int64 {
	return min(c.cost, fixedwindow.MaxUnits) - min(c.d.Cost, fixedwindow.MaxUnits)
}

// idLasts is how long the primary surely remembers an id. After that a call that adds
// units is repeated, and may count twice; one that gives back is not: what is in doubt counts.
const idLasts = 9 * time.Minute

func (c *call) ended(now int64) bool {
	forgotten := c.sent > 0 && now-c.sent >= int64(idLasts)
	return c.ends <= fixedwindow.Seconds(now) || forgotten && c.added() < 0
}

func (j *journal) empty() bool { return j.size.Load() == 0 }

// enter enters an adjustment if there is room. With an id it becomes a call; without one it is
// added to the sums of its windows, and what it changes in smooth quotas is left out.
func (j *journal) enter(subject string, c call) error {
	if c.id == "" && c.added() == 0 {
		return nil
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now().UnixNano()
	e := j.entries[subject]
	if e == nil {
		e = &entry{subject: subject, merging: make(chan struct{}, 1)}
	}
	j.expire(e, now)
	var space [2 * engine.MaxQuotas]fixedwindow.Window
	windows := appendOpen(space[:0], &c.d, now)
	if e.empty() && (c.id != "" || len(windows) > 0) && !j.room(now) {
		return fmt.Errorf("failover: %w: the journal is full; Options.JournalSize is %d", ratelimit.ErrUnavailable, j.bound)
	}
	if c.id != "" {
		for _, w := range windows {
			c.ends = max(c.ends, int64(w.End))
		}
		for i := range engine.Of(c.d.Plan).Len() { // of smooth quotas too
			c.ends = max(c.ends, engine.Of(c.d.Plan).WindowEnd(i, now))
		}
		e.calls = append(e.calls, c)
	} else {
		e.plan = c.d.Plan
		for _, w := range windows {
			e.add(w, c.added())
		}
	}
	j.place(e)
	return nil
}

// place puts an entry into the journal, or removes it if it is empty. The journal is locked.
func (j *journal) place(e *entry) {
	if !e.empty() {
		j.entries[e.subject] = e
	} else if j.entries[e.subject] == e {
		delete(j.entries, e.subject)
	}
	if j.size.Store(int64(len(j.entries))); j.empty() {
		j.entries = map[string]*entry{} // a map never shrinks
	}
}

// expire removes from an entry what has ended, and sums of zero. The journal is locked.
func (j *journal) expire(e *entry, now int64) {
	seconds := fixedwindow.Seconds(now)
	e.calls = slices.DeleteFunc(e.calls, func(c call) bool { return c.ended(now) })
	e.sums = slices.DeleteFunc(e.sums, func(s sum) bool { return int64(s.window.End) <= seconds || s.added == 0 })
	j.place(e)
}

// room reports whether there is room for another entry. It makes room by removing what has
// ended from a sample of the entries. The journal is locked.
func (j *journal) room(now int64) bool {
	sample := 32
	for _, e := range j.entries { // begins anywhere
		if len(j.entries) < j.bound || sample == 0 {
			break
		}
		j.expire(e, now)
		sample--
	}
	return len(j.entries) < j.bound
}

// forget removes the entry of subject.
func (j *journal) forget(subject string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.entries[subject]; e != nil {
		e.calls, e.sums = nil, nil
		j.place(e)
	}
}

func (j *journal) all() []*entry {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Collect(maps.Values(j.entries))
}

// errUnmerged says that the primary does not know all of the subject's usage, and refuses it.
var errUnmerged = errors.New("failover: usage of the subject is not merged")

// bring merges the entry of subject. A request brings the usage of its
// subject before the primary decides, so that an outage grants no second quota.
func (j *journal) bring(ctx context.Context, subject string) error {
	for !j.empty() {
		j.mu.Lock()
		e := j.entries[subject]
		j.mu.Unlock()
		if e == nil {
			return nil
		}
		if e.refused.Load() {
			return errUnmerged
		}
		if err := j.merge(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// merge makes the calls of e. A call that fails stays in the journal, and is repeated as it
// is. One that the primary finds invalid is dropped.
func (j *journal) merge(ctx context.Context, e *entry) (err error) {
	defer recovered(&err)
	select {
	case e.merging <- struct{}{}:
		defer func() { <-e.merging }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for c, ok := j.next(e); ok; c, ok = j.next(e) {
		switch err := j.primary.Adjust(ctx, e.subject, &c.d, c.cost, c.id); {
		case errors.Is(err, ratelimit.ErrInvalid):
			j.lost.Add(1)
		case err != nil:
			return err
		}
		j.made(e, c.id)
	}
	return nil
}

// next returns the call to make for e, if any is left. The caller holds e.merging.
func (j *journal) next(e *entry) (c call, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now().UnixNano()
	if j.expire(e, now); e.empty() {
		return c, false
	}
	if len(e.calls) == 0 {
		e.seal(now)
	}
	e.calls[0].sent = cmp.Or(e.calls[0].sent, now)
	return e.calls[0], true
}

// made removes the call that next returned, unless it has ended.
func (j *journal) made(e *entry, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(e.calls) > 0 && e.calls[0].id == id {
		e.calls = e.calls[1:]
		j.place(e)
	}
}

// recovered makes a panic of the primary an error: in the background it ends the process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("failover: the primary panicked: %v", p)
	}
}

// mergeAll merges what is in the journal, until the context ends. It merges some entries at
// once, so that a few which hang do not keep it from the others, and tries each several times.
func (j *journal) mergeAll(ctx context.Context) {
	var wg sync.WaitGroup
	slots := make(chan struct{}, 32)
	for _, e := range j.all() {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			for try := 0; try < 3 && j.merge(ctx, e) != nil; try++ {
			}
		})
	}
	wg.Wait()
}

func (e *entry) empty() bool { return len(e.calls)+len(e.sums) == 0 }

// add adds units to the sum of a window.
func (e *entry) add(w fixedwindow.Window, added int64) {
	i := slices.IndexFunc(e.sums, func(s sum) bool { return s.window == w })
	if i < 0 {
		i, e.sums = len(e.sums), append(e.sums, sum{window: w})
	}
	s := &e.sums[i]
	s.added = min(max(s.added+added, -fixedwindow.MaxUnits), fixedwindow.MaxUnits)
}

// seal makes a call of the first sum and those that are equal to it: mostly of all.
func (e *entry) seal(now int64) {
	c := call{d: ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: e.plan, Time: now}, id: rand.Text()}
	added, windows := e.sums[0].added, c.d.Receipt.Others[:0]
	e.sums = slices.DeleteFunc(e.sums, func(s sum) bool {
		if s.added != added || len(windows) == cap(windows) {
			return false
		}
		windows = append(windows, s.window)
		c.ends = max(c.ends, int64(s.window.End))
		return true
	})
	c.cost, c.d.Cost = max(added, 0), max(-added, 0)
	e.calls = append(e.calls, c)
}

// appendOpen appends the fixed and calendar windows that d names and that are open.
func appendOpen(all []fixedwindow.Window, d *ratelimit.Decision, now int64) []fixedwindow.Window {
	seconds := fixedwindow.Seconds(now)
	for i := range engine.Of(d.Plan).Len() {
		if kind, end := engine.Of(d.Plan).Kind(i), d.States[i].Reset; kind > 0 && end > seconds {
			all = append(all, fixedwindow.Window{Length: uint32(kind / time.Second), End: uint32(min(end, math.MaxUint32))})
		}
	}
	for _, o := range d.Receipt.Others {
		if o.Length > 0 && int64(o.End) > seconds {
			all = append(all, o)
		}
	}
	return all
}
