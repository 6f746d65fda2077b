package memory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/bits"
	"slices"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Options are optional settings.
type Options struct {
	// MaxSubjects is the largest number of subjects, 1 to 1<<28; 0 means 1<<20. A
	// subject takes 40 to 50 bytes with two quotas. It takes a second place while it
	// has strikes, and after a ban until every ban is forgiven.
	//
	// A table of more than 4096 subjects has segments of about that size. At the bound
	// a new subject finds a place only if its segment has one.
	MaxSubjects int

	// Secret belongs to the engine that saved the state to be loaded; see
	// [Limiter.Secret]. Nil means a new one.
	Secret []byte

	// Now is read in place of the system's clock. Nil means the system's clock.
	Now func() time.Time
}

const (
	defaultSubjects = 1 << 20
	maxSubjects     = 1 << 28
)

func (o Options) validate() error {
	if o.MaxSubjects < 0 || o.MaxSubjects > maxSubjects {
		return fmt.Errorf("memory: Options.MaxSubjects must be 1 to %d, or 0 for %d, got %d", maxSubjects, defaultSubjects, o.MaxSubjects)
	}
	if n := len(o.Secret); n != 0 && n != secretSize {
		return fmt.Errorf("memory: Options.Secret must have %d bytes, or none for a new one, got %d", secretSize, n)
	}
	if k := newHashKey(o.Secret); slices.Contains(k[:], 0) {
		return errors.New("memory: Options.Secret must be random, got zeros")
	}
	return nil
}

// A Limiter decides in the memory of this process. It is made by [New], and is safe
// for concurrent use. It starts no goroutine, and needs no Close.
type Limiter struct {
	clock    clock
	key      hashKey
	layouts  layouts
	shift    uint
	tables   []atomic.Pointer[table] // of the segments: every call reads one, and here they are close together
	segments []segment

	_        [64]byte // what follows changes; what is above does not
	capacity capacity
	holds    holds
}

var _ interface {
	ratelimit.Limiter
	engine.MultiTaker
	engine.Peeker
	Reset(ctx context.Context, subject string) error
	engine.Adjuster
	engine.Leaser
	engine.Banner
	engine.Holder
} = (*Limiter)(nil)

// subjectsInSegment is how many subjects a segment of a full table holds. It
// bounds what a change of size costs, which is the longest of all operations, at
// some hundred microseconds.
const subjectsInSegment = 1 << 12

// New returns an engine without subjects. Make it once: each one counts for itself.
func New(opts Options) (*Limiter, error) {
	if err := opts.validate(); err != nil {
		return nil, err
	}
	bound := cmp.Or(opts.MaxSubjects, defaultSubjects)
	l := &Limiter{key: newHashKey(opts.Secret), capacity: capacity{bound: int64(bound)}}
	l.clock.init(opts.Now)
	l.layouts.init()
	log := bits.Len(uint(bound-1) / subjectsInSegment)
	l.shift = uint(64 - log)
	l.segments = make([]segment, 1<<log)
	l.tables = make([]atomic.Pointer[table], 1<<log)
	for i := range l.segments {
		s := &l.segments[i]
		s.table, s.capacity, s.layouts, s.key = &l.tables[i], &l.capacity, &l.layouts, &l.key
		s.table.Store(newTable(minSlots, firstWindow+conductWords))
		s.returns = map[bucketKey][]gcra.Return{}
	}
	return l, nil
}

var errNoSubject = fmt.Errorf("%w: no subject", ratelimit.ErrInvalid)

// Peek implements [engine.Peeker].
func (l *Limiter) Peek(_ context.Context, subject string, plan *ratelimit.Plan) (d ratelimit.Decision, err error) {
	if d, err := engine.Decide(subject, plan, 1); err != nil || d.Outcome != 0 {
		return d, err
	}
	x := ruling{subject: l.lock(subject)}
	defer x.unlock()
	d.Plan, d.Cost = plan, 1
	x.open(&d)
	x.spare(&d)
	return d, nil
}

// Reset forgets subject: its usage, strikes and ban.
func (l *Limiter) Reset(_ context.Context, subject string) error {
	if subject == "" {
		return errNoSubject
	}
	s := l.lock(subject)
	defer s.unlock()
	s.drop(conductHash(s.hash)) // first: a ban is in force without an account too
	s.drop(s.hash)
	maps.DeleteFunc(s.returns, func(b bucketKey, _ []gcra.Return) bool { return b.account == s.hash })
	s.generation++
	return nil
}

// Adjust implements [engine.Adjuster]. It ignores ctx, and any id that is not of a hold.
func (l *Limiter) Adjust(_ context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	added, err := engine.Adjustment(subject, d, units)
	if err != nil {
		return err
	}
	held := false
	if id != "" && l.holds.live != nil {
		l.holds.mu.Lock()
		defer l.holds.mu.Unlock()
		held = l.holds.end(l.key.sum(subject), id)
	}
	if added == 0 && !held {
		return nil
	}
	s := l.lock(subject)
	defer s.unlock()
	s.freeze()
	s.adjust(d, added)
	return s.keep()
}

// keep writes what is left of the account.
func (s *subject) keep() error {
	switch {
	case s.account.n > 0:
		return s.put(dirty)
	case s.found: // all of its windows are over
		s.unfreeze()
		s.drop(s.hash)
	}
	return nil
}

// Stats tell how full the table is.
type Stats struct {
	Subjects int64  // places in use
	Bound    int64  // the most places, Options.MaxSubjects
	Evicted  uint64 // subjects replaced at the bound before their windows were over, since New
	Refused  uint64 // subjects and strikes that found no place at the bound, since New
}

// Stats returns the present numbers.
func (l *Limiter) Stats() Stats {
	c := &l.capacity
	return Stats{Subjects: c.used.Load(), Bound: c.bound, Evicted: c.evicted.Load(), Refused: c.refused.Load()}
}
