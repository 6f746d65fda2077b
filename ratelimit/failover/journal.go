package failover

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"iter"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A journal holds the adjustments that the primary has not made, by subject, until they
// are merged: requests that were admitted while it did not decide, and what changed the
// costs of requests. It is bounded: when it is full, nothing is added but to sums that it
// holds.
type journal struct {
	primary engine.Adjuster // nil without a local engine: the journal is then empty
	bound   int             // of charges
	held    atomic.Int64    // entries
	lost    atomic.Uint64
	warned  atomic.Bool // a loss of this outage was logged

	mu      sync.Mutex
	entries map[string]*entry // by subject
	charges int               // in all entries
}

func (j *journal) empty() bool { return j.held.Load() == 0 }

// admit enters what the local engine admitted.
func (j *journal) admit(subject string, d *ratelimit.Decision) {
	made := *d
	made.Cost = 0
	if j.enter(subject, &made, d.Cost, "", time.Now().UnixNano(), nil) == nil {
		return
	}
	j.lost.Add(1)
	if !j.warned.Swap(true) {
		slog.Warn("failover: the journal is full; the primary will not count all requests that are admitted without it; raise Options.JournalSize", "JournalSize", j.bound)
	}
}

// enter enters an adjustment if it has room, and if here, which is not nil unless the local
// engine has made it, then makes it there. An id says that the primary may have made it.
func (j *journal) enter(subject string, d *ratelimit.Decision, units int64, id string, now int64, here func() error) error {
	j.mu.Lock()
	defer j.mu.Unlock()
	if e := j.entries[subject]; e != nil {
		j.compact(e, now)
	}
	e, more := j.entries[subject], 0
	for c := range charges(d, units, id, now) {
		if e == nil || e.find(c) == nil {
			more++
		}
	}
	if more > 0 && !j.room(more, now) {
		return fmt.Errorf("failover: %w: the journal is full; Options.JournalSize is %d", ratelimit.ErrUnavailable, j.bound)
	}
	if here != nil {
		if err := here(); err != nil {
			return err
		}
	}
	for c := range charges(d, units, id, now) {
		e := j.entry(subject)
		if o := e.find(c); o != nil {
			o.add(c)
			continue
		}
		e.charges = append(e.charges, *c)
		j.charges++
	}
	return nil
}

// entry returns the entry of subject. The journal is locked.
func (j *journal) entry(subject string) *entry {
	e := j.entries[subject]
	if e == nil {
		if j.entries == nil {
			j.entries = map[string]*entry{}
		}
		e = &entry{subject: subject, merging: make(chan struct{}, 1)}
		j.entries[subject] = e
		j.held.Add(1)
	}
	return e
}

// room reports whether there is room for more charges. It makes room by removing what has
// ended from a sample of the entries. The journal is locked.
func (j *journal) room(more int, now int64) bool {
	sample := 32
	for _, e := range j.entries { // begins anywhere
		if j.charges+more <= j.bound || sample == 0 {
			break
		}
		j.compact(e, now)
		sample--
	}
	return j.charges+more <= j.bound
}

// compact removes from e, which is in the journal, what has ended, and e if nothing is
// left. The journal is locked.
func (j *journal) compact(e *entry, now int64) {
	before := len(e.charges)
	e.compact(now)
	j.charges += len(e.charges) - before
	if len(e.charges) > 0 {
		return
	}
	if delete(j.entries, e.subject); len(j.entries) == 0 {
		j.entries = nil // a map never shrinks
	}
	j.held.Add(-1)
}

// find returns the entry of subject, nil if there is none, and whether it backs off.
func (j *journal) find(subject string) (e *entry, backsOff bool) {
	if j.empty() {
		return nil, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	e = j.entries[subject]
	return e, e != nil && e.wait > 0
}

// next returns the call to make for e. If all are made, it removes the entry. The caller
// holds e.merging.
func (j *journal) next(e *entry) (c charge, ok bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.entries[e.subject] != e {
		return c, false // it has ended
	}
	now := time.Now().UnixNano()
	if j.compact(e, now); len(e.charges) == 0 {
		return c, false
	}
	if e.charges[0].id == "" {
		e.charges[0].seal(now)
	}
	return e.charges[0], true
}

// made records that the call that next returned is made.
func (j *journal) made(e *entry, id string) {
	j.mu.Lock()
	defer j.mu.Unlock()
	if len(e.charges) > 0 && e.charges[0].id == id {
		e.charges = e.charges[1:]
		j.charges--
	}
}

// backOff records that the primary refused e. The waits double, from shortest to
// longest. An entry is removed when its windows have ended.
func (j *journal) backOff(e *entry, shortest, longest time.Duration) {
	j.mu.Lock()
	defer j.mu.Unlock()
	now := time.Now()
	e.wait = min(max(2*e.wait, shortest), longest)
	e.due = now.Add(e.wait)
	if j.entries[e.subject] == e {
		j.compact(e, now.UnixNano())
	}
}

// all returns the entries, those that are due first at first.
func (j *journal) all() (all []*entry) {
	j.mu.Lock()
	all = slices.Collect(maps.Values(j.entries))
	j.mu.Unlock()
	slices.SortFunc(all, func(a, b *entry) int { return a.due.Compare(b.due) })
	return all
}

// errBacksOff says that the primary does not know all of the subject's usage, and
// refuses it.
var errBacksOff = errors.New("failover: usage of the subject is not merged")

// bring merges what the journal holds of subject. A request brings the usage of its
// subject before the primary decides, so that an outage grants no second quota.
func (j *journal) bring(ctx context.Context, subject string) error {
	e, backsOff := j.find(subject)
	for ; e != nil; e, backsOff = j.find(subject) {
		if backsOff {
			return errBacksOff
		}
		if err := j.merge(ctx, e); err != nil {
			return err
		}
	}
	return nil
}

// merge makes the charges of e. A charge that fails stays in the journal, and is repeated
// as it is. One that the primary finds invalid is dropped.
func (j *journal) merge(ctx context.Context, e *entry) error {
	select {
	case e.merging <- struct{}{}:
		defer func() { <-e.merging }()
	case <-ctx.Done():
		return ctx.Err()
	}
	for {
		c, ok := j.next(e)
		if !ok {
			return nil
		}
		err := j.send(ctx, e.subject, &c)
		switch {
		case errors.Is(err, ratelimit.ErrInvalid):
			j.lost.Add(1)
		case err != nil:
			return err
		}
		j.made(e, c.id)
	}
}

func (j *journal) send(ctx context.Context, subject string, c *charge) (err error) {
	defer recovered(&err)
	return j.primary.Adjust(ctx, subject, &c.d, c.units, c.id)
}

// recovered makes a panic of the primary an error: in the background it ends the process.
func recovered(err *error) {
	if p := recover(); p != nil {
		*err = fmt.Errorf("failover: the primary panicked: %v", p)
	}
}

// mergeAll merges what the journal holds, until the context ends. It merges some
// entries at once, so that a few which hang do not keep it from the others, and tries
// each several times.
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

// An entry holds the adjustments of one subject that the primary has not made. The journal's
// lock guards it, and merging is a semaphore.
type entry struct {
	subject string
	merging chan struct{} // full while a goroutine merges the entry
	charges []charge      // in the order in which they are sent

	// Of an entry that the primary refused although it answered a probe; otherwise 0:
	wait time.Duration // before it is tried again
	due  time.Time     // when it is
}

// A charge is the sum of adjustments of the same windows, or of one smooth quota. With an
// id it holds the arguments of a call of the primary. From then on nothing is added: the
// primary may have made it, and would take another one with this id for a repetition.
type charge struct {
	d  ratelimit.Decision // names the windows; without an id its Cost is 0
	at int64              // the latest adjustment, Unix nanoseconds
	id string

	// units are added, or given back if they are negative. Of a smooth quota and without an
	// id they are the time in which they come back, in 2⁻³² seconds.
	units int64

	// smooth is the number of the smooth quota, from 1; 0: these are fixed windows. Its
	// State in d says when the bucket of the local engine is full.
	smooth int
}

// charges yields what an adjustment comes to: with an id itself, otherwise a charge of each
// smooth quota, whose States in d are those after the adjustment, and one of the fixed windows.
func charges(d *ratelimit.Decision, units int64, id string, now int64) iter.Seq[*charge] {
	return func(yield func(*charge) bool) {
		c := charge{d: *d, at: now, units: units, id: id}
		if id == "" {
			c.units = min(units, fixedwindow.MaxUnits) - min(d.Cost, fixedwindow.MaxUnits)
			c.d.Cost = 0
			for i := range of(d.Plan).Len() {
				if of(d.Plan).Kind(i) < 0 && d.States[i].Reset != 0 {
					c.d.States[i].Reset = 0
					yield(smoothCharge(d, i, units, now))
				}
			}
		}
		if id != "" || c.expire(now) {
			yield(&c)
		}
	}
}

// smoothCharge returns the part of an adjustment that is of a smooth quota.
func smoothCharge(d *ratelimit.Decision, i int, units, now int64) *charge {
	c := &charge{d: ratelimit.Decision{Outcome: d.Outcome, Plan: d.Plan, Time: d.Time}, at: now, smooth: i + 1}
	c.d.States[i], c.d.Receipt.Rounded[i] = d.States[i], d.Receipt.Rounded[i]
	b, at := c.bucket(), gcra.At(now)
	was, is := b.Span(d.Cost), b.Span(units)
	away := max(gcra.At(max(d.Time, 0))+gcra.Time(was), at) - at // what has come back by itself is not given back
	c.units = max(int64(is-was), -int64(away))
	return c
}

func (c *charge) bucket() gcra.Bucket { return of(c.d.Plan).Bucket(c.smooth - 1) }

// full returns when the bucket of a smooth quota is full.
func (c *charge) full() gcra.Time {
	return gcra.Of(c.d.States[c.smooth-1].Reset, c.d.Receipt.Rounded[c.smooth-1])
}

// expire removes the windows that have ended. It reports whether one is open.
func (c *charge) expire(now int64) (open bool) {
	d, seconds := &c.d, fixedwindow.Seconds(now)
	for i := range of(d.Plan).Len() {
		end := d.States[i].Reset
		if end != 0 && of(d.Plan).Kind(i) < 0 { // the primary may know other usage
			end = of(d.Plan).WindowEnd(i, c.at)
		}
		if end > seconds {
			open = true
		} else {
			d.States[i].Reset = 0
		}
	}
	n := 0
	for _, o := range d.Receipt.Others {
		if o.Length > 0 && int64(o.End) > seconds {
			d.Receipt.Others[n], open = o, true
			n++
		}
	}
	clear(d.Receipt.Others[n:])
	return open
}

// find returns the charge that c can be added to, nil if there is none.
func (e *entry) find(c *charge) *charge {
	for i := range e.charges {
		if o := &e.charges[i]; o.id == "" && c.id == "" && o.same(c) {
			return o
		}
	}
	return nil
}

// same reports whether two charges are of one smooth quota, or of the same windows.
func (c *charge) same(o *charge) bool {
	if c.smooth > 0 && o.smooth > 0 {
		return of(c.d.Plan).Quota(c.smooth-1) == of(o.d.Plan).Quota(o.smooth-1)
	}
	return covers(&c.d, &o.d) && covers(&o.d, &c.d)
}

// covers reports whether a names each window of b.
func covers(a, b *ratelimit.Decision) bool {
	for i := range of(b.Plan).Len() {
		if end := b.States[i].Reset; end != 0 && !names(a, of(b.Plan).Kind(i), end) {
			return false
		}
	}
	for _, o := range b.Receipt.Others {
		if o.Length > 0 && !names(a, time.Duration(o.Length)*time.Second, int64(o.End)) {
			return false
		}
	}
	return true
}

func names(d *ratelimit.Decision, kind time.Duration, end int64) bool {
	for i := range of(d.Plan).Len() {
		if d.States[i].Reset == end && of(d.Plan).Kind(i) == kind {
			return true
		}
	}
	return slices.Contains(d.Receipt.Others[:], fixedwindow.Window{Length: uint32(kind / time.Second), End: uint32(end)})
}

// fade shortens what a smooth quota is given back by the time that has passed: so much has
// come back by itself, and must not be taken from later charges.
func (c *charge) fade(now int64) {
	if c.smooth > 0 && c.id == "" && c.units < 0 {
		c.units = min(c.units+int64(gcra.At(now)-gcra.At(min(c.at, now))), 0)
		c.at = max(c.at, now)
	}
}

// add adds a charge of the same windows.
func (c *charge) add(o *charge) {
	sum, most, at := c.units+o.units, int64(fixedwindow.MaxUnits), max(c.d.Time, o.d.Time)
	if c.smooth > 0 {
		most = int64(c.bucket().Span(fixedwindow.MaxUnits))
		if o.units < 0 || o.full() > c.full() {
			c.d, c.smooth = o.d, o.smooth
		}
	}
	c.units, c.d.Time, c.at = min(max(sum, -most), most), at, max(c.at, o.at)
}

// compact removes what has ended, and what was given back as a whole before it was sent,
// and adds up the charges that are of the same windows by now.
func (e *entry) compact(now int64) {
	all := e.charges
	e.charges = all[:0]
	for i := range all {
		c := all[i]
		c.fade(now)
		if open := c.expire(now); !open || c.id == "" && c.units == 0 {
			continue
		}
		if c.id != "" {
			c = all[i] // its arguments stay
		} else if o := e.find(&c); o != nil {
			o.add(&c)
			continue
		}
		e.charges = append(e.charges, c)
	}
	clear(all[len(e.charges):])
}

// seal makes c a call of the primary. Of a smooth quota it charges no more than the
// subject still owes the local engine.
func (c *charge) seal(now int64) {
	if c.smooth > 0 {
		b, at := c.bucket(), gcra.At(now)
		interval := int64(b.Interval())
		owed := int64(max(c.full(), at) - at)
		c.d.Time = now
		if c.units > 0 {
			c.units = (min(c.units, owed) + interval - 1) / interval // rounded up
		} else {
			c.units = (c.units - interval/2) / interval // to the nearest
		}
	}
	if c.units < 0 {
		c.d.Cost, c.units = -c.units, 0
	}
	c.id = rand.Text()
}
