package memory

import (
	"context"
	"fmt"
	"math/bits"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Options of a [Limiter]. The zero value works.
type Options struct {
	// MaxSubjects is the largest number of subjects, 1 to 1<<28; 0 means 1<<20.
	// A subject takes 40 to 50 bytes with two quotas, and a second place
	// while it has strikes or a ban.
	MaxSubjects int

	// Secret is what [Limiter.Secret] of another engine returned, whose state is
	// to be loaded. Nil means a new one.
	Secret []byte

	// Now is read in place of the system's clock. Nil means the system's.
	Now func() time.Time
}

func (o Options) validate() error {
	if o.MaxSubjects < 0 || o.MaxSubjects > 1<<28 {
		return fmt.Errorf("memory: Options.MaxSubjects: %d is not from 0 to %d", o.MaxSubjects, 1<<28)
	}
	if n := len(o.Secret); n != 0 && n != secretSize {
		return fmt.Errorf("memory: Options.Secret: %d bytes, want %d", n, secretSize)
	}
	return nil
}

// A Limiter decides in the memory of this process. It is made by [New]. It may
// be used by any number of goroutines. It starts none, and needs no closing.
type Limiter struct {
	clock    clock
	key      hashKey
	shapes   shapes
	shift    uint
	tables   []atomic.Pointer[table] // of the segments: every call reads one, and here they are close together
	segments []segment

	_       [64]byte // what follows changes; what is above does not
	bound   int64
	held    atomic.Int64 // slots in use
	evicted atomic.Uint64
	refused atomic.Uint64
}

var _ interface {
	ratelimit.Limiter
	ratelimit.Peeker
	ratelimit.Resetter
	ratelimit.Refunder
	ratelimit.UsageAdder
	ratelimit.Banner
} = (*Limiter)(nil)

// subjectsInSegment is how many subjects a segment of a full table holds. It
// bounds what a change of size costs, which is the longest of all operations, at
// some hundred microseconds.
const subjectsInSegment = 1 << 12

// New returns an engine without subjects.
func New(opts Options) (*Limiter, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.MaxSubjects == 0 {
		opts.MaxSubjects = 1 << 20
	}
	l := &Limiter{key: newHashKey(opts.Secret), bound: int64(opts.MaxSubjects)}
	l.clock.init(opts.Now)
	l.shapes.init()
	log := bits.Len(uint(opts.MaxSubjects-1) / subjectsInSegment)
	l.shift = uint(64 - log)
	l.segments = make([]segment, 1<<log)
	l.tables = make([]atomic.Pointer[table], 1<<log)
	for i := range l.segments {
		l.segments[i].table = &l.tables[i]
		l.segments[i].shapes = map[int]int{}
		l.tables[i].Store(newTable(minSlots, wordWindows+recordWindows))
	}
	return l, nil
}

// Take implements [ratelimit.Limiter]. It never waits for anything but other
// calls of Take, and ignores ctx.
func (l *Limiter) Take(_ context.Context, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if plan == nil || plan.Len() == 0 || cost < 1 || subject == "" {
		return d, plan.Check(subject, cost)
	}
	d.Plan, d.Cost, d.Time = plan, cost, l.clock.about()
	h := l.key.sum(subject)
	t := l.tables[h>>l.shift].Load()
	if i, found := t.find(h); found {
		if slot := t.slot(i); l.charge(slot, h, &d) || l.refuse(t, i, slot, h, &d, false) {
			return d, nil
		}
	}
	if err = plan.Check(subject, cost); err == nil {
		err = l.decide(l.segment(h), h, subject, &d)
	}
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return d, nil
}

// Stats tell how full the table is.
type Stats struct {
	Subjects int64  // places in use
	Bound    int64  // places there are at most
	Evicted  uint64 // subjects forgotten at the bound before their time, ever
	Refused  uint64 // times a subject found no place at the bound, ever
}

// Stats returns the present numbers.
func (l *Limiter) Stats() Stats {
	return Stats{
		Subjects: l.held.Load(),
		Bound:    l.bound,
		Evicted:  l.evicted.Load(),
		Refused:  l.refused.Load(),
	}
}
