package lease

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A shared engine is what New needs.
type shared interface {
	ratelimit.Limiter
	engine.Leaser
	engine.MultiTaker
	engine.Peeker
	engine.Adjuster
	ratelimit.Banner
	Reset(ctx context.Context, subject string) error
}

// A Limiter decides with shares of what a shared engine has left. It is made by [New], and
// is safe for concurrent use.
type Limiter struct {
	shared     shared
	seed       maphash.Seed
	read       func() reading // of the clocks
	tables     [tables]table
	returned   atomic.Uint64
	background func(func()) // runs a function

	closing sync.RWMutex
	closed  atomic.Bool
	stop    chan struct{}
	ongoing sync.WaitGroup // the sweep, renewals, and what is given back
}

// New returns a Limiter in front of an engine, which must be able to do all that those of
// ratelimit/redislimit and ratelimit/memory can do. Make it once: each one has shares of its
// own. It has a goroutine, which [Limiter.Close] ends.
func New(e ratelimit.Limiter) (*Limiter, error) {
	if nilvalue.InEngine(e) {
		return nil, errors.New("lease: New needs an engine, got nil or the zero memory.Limiter")
	}
	s, ok := e.(shared)
	if !ok {
		return nil, fmt.Errorf("lease: the engine must be an engine.Leaser with all that the engines of memory and redislimit can do, got a %T", e)
	}
	l := newLimiter(s, system)
	l.ongoing.Go(l.sweep)
	return l, nil
}

func newLimiter(s shared, read func() reading) *Limiter {
	l := &Limiter{shared: s, seed: maphash.MakeSeed(), read: read, stop: make(chan struct{})}
	l.background = l.start
	for i := range l.tables {
		t := &l.tables[i]
		t.clock.last = read()
		t.places, t.names, t.reasons = map[uint64]int32{}, map[uint64]string{}, map[uint64]*string{}
	}
	return l
}

// of returns the numbers of a plan.
func of(p *ratelimit.Plan) *plan.Plan { return (*plan.Plan)(p) }

// table returns the hash of a subject and its table. As in package memory, two subjects may
// have one hash: the chance is one in ten billion if all tables are full.
func (l *Limiter) table(subject string) (uint64, *table) {
	h := maphash.String(l.seed, subject)
	return h, &l.tables[h%tables]
}

// Take implements [ratelimit.Limiter].
func (l *Limiter) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if p == nil || of(p).Len() == 0 || of(p).Check(subject, cost) != nil {
		return l.shared.Take(ctx, subject, p, cost)
	}
	if of(p).Smooth() {
		l.forget(subject)
		return l.shared.Take(ctx, subject, p, cost)
	}
	err = l.take(ctx, subject, p, cost, false, &d)
	return d, err
}

// take makes d the decision. If checked, the share may serve without another question.
func (l *Limiter) take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64, checked bool, d *ratelimit.Decision) (err error) {
	h, t := l.table(subject)
	var orphans []orphan
	r := l.read() // before the lock: two readings take longer than a decision
	t.mu.Lock()
	now := t.clock.at(r)
	var e *entry
	q := question{asked: now, cost: cost, take: true, unknown: !l.closed.Load(), forgets: t.forgets}
	if q.unknown && !t.rare(h, now, cost) {
		e = t.entry(h, p, now, max(2*smallest-cost, 0), &orphans)
	}
	if e == nil {
		t.stats.Asked++
		t.mu.Unlock()
		l.giveBack(orphans)
		if *d, err = l.shared.Take(ctx, subject, p, cost); q.unknown && err == nil && !d.Allowed() {
			l.hear(subject, p, &q, d, true)
		}
		return err
	}
	if !checked {
		e.count(now, cost)
	}
	d.Plan = p
	next := e.decide(now, cost, checked, d)
	switch next {
	case answered:
		t.stats.Local++
		if e.kind == banned {
			d.Receipt.BanReason = t.reason(h)
		}
	case renew:
		t.stats.Local++
		q = t.share(e, now)
	case check:
		q = t.question(e, now, 0)
	case ask:
		q = t.question(e, now, cost)
	}
	t.mu.Unlock()
	switch next {
	case answered:
	case renew:
		l.renew(subject, p, q)
	case check:
		if err = l.ask(ctx, subject, p, &q, d); err != nil || d.Outcome != ratelimit.Banned {
			*d = ratelimit.Decision{}
			return l.take(ctx, subject, p, cost, true, d)
		}
		d.Cost = cost
		engine.Complete(d)
	case ask:
		l.giveBack(orphans)
		err = l.ask(ctx, subject, p, &q, d)
	}
	return err
}

// renew asks for a share in the background.
func (l *Limiter) renew(subject string, p *ratelimit.Plan, q question) {
	l.background(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		var d ratelimit.Decision
		_ = l.ask(ctx, subject, p, &q, &d)
	})
}

// ask asks the engine, and has the answer heard, or that there was none: also if it panics.
func (l *Limiter) ask(ctx context.Context, subject string, p *ratelimit.Plan, q *question, d *ratelimit.Decision) (err error) {
	answered := false
	defer func() { l.hear(subject, p, q, d, answered) }()
	if q.take {
		*d, err = l.shared.Take(ctx, subject, p, q.cost)
	} else {
		// What a caller that goes away was charged is lost, and so would be what comes back.
		ctx, cancel := attentive(ctx)
		defer cancel()
		*d, err = l.shared.Lease(ctx, subject, p, q.cost, q.terms)
	}
	answered = err == nil
	return err
}

// attentive returns a context with the deadline of ctx that is not cancelled before.
func attentive(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	return context.WithoutCancel(ctx), func() {}
}

// hear has the table know an answer, or that there was none. A subject that was admitted may
// then get a share.
func (l *Limiter) hear(subject string, p *ratelimit.Plan, q *question, d *ratelimit.Decision, answered bool) {
	h, t := l.table(subject)
	var orphans []orphan
	var share question
	now := l.read()
	t.mu.Lock()
	if answered {
		t.learn(h, subject, q, d, &orphans)
		if e := t.find(h, p); e != nil && q.cost > 0 && d.Allowed() && e.asking == 0 && e.left() == 0 && t.wants(e) > 0 {
			share = t.share(e, t.clock.at(now))
		}
	} else {
		t.fail(h, q, t.clock.at(now), p)
	}
	t.mu.Unlock()
	l.giveBack(orphans)
	if share.id > 0 {
		l.renew(subject, p, share)
	}
}

// start runs f on a goroutine that Close waits for, or here if that is too late.
func (l *Limiter) start(f func()) {
	l.closing.RLock()
	closed := l.closed.Load()
	if !closed {
		l.ongoing.Go(f)
	}
	l.closing.RUnlock()
	if closed {
		f()
	}
}

// reason returns why a subject is banned.
func (t *table) reason(h uint64) *string {
	if r := t.reasons[h]; r != nil {
		return r
	}
	return &plan.Strikes
}

// giveBack gives shares back in the background. It is never tried twice: the first time may
// have done it, though no answer came.
func (l *Limiter) giveBack(orphans []orphan) {
	if len(orphans) == 0 {
		return
	}
	l.background(func() { l.returnAll(orphans) })
}

const (
	parallel = 64              // shares that are given back at once
	patience = 2 * time.Second // how long all of them may take
)

func (l *Limiter) returnAll(orphans []orphan) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var all sync.WaitGroup
	free := make(chan struct{}, parallel)
	for i := range orphans {
		free <- struct{}{}
		all.Go(func() {
			defer func() { <-free }()
			o := &orphans[i]
			if _, err := l.shared.Lease(ctx, o.subject, o.charge.Plan, 0, engine.Terms{Back: &o.charge, Denied: int(o.denied)}); err == nil {
				l.returned.Add(uint64(o.charge.Cost))
			}
		})
	}
	all.Wait()
}

// sweep gives back, twice a second, what is not used.
func (l *Limiter) sweep() {
	tick := time.NewTicker(time.Second / 2)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			l.returnAll(l.collect((*table).sweep))
		case <-l.stop:
			return
		}
	}
}

// collect collects the orphans of all tables.
func (l *Limiter) collect(from func(t *table, now int64, orphans *[]orphan)) (orphans []orphan) {
	for i := range l.tables {
		t := &l.tables[i]
		t.mu.Lock()
		from(t, t.clock.at(l.read()), &orphans)
		t.mu.Unlock()
	}
	return orphans
}

// Close gives back all shares, and then waits for what runs in the background: two seconds for
// each of the two, at most, if the engine keeps deadlines. Requests can still be decided, by
// the engine.
func (l *Limiter) Close() {
	l.closing.Lock()
	closed := l.closed.Swap(true)
	l.closing.Unlock()
	if closed {
		return
	}
	close(l.stop)
	l.returnAll(l.collect(func(t *table, _ int64, orphans *[]orphan) {
		for i := len(t.entries) - 1; i >= 0; i-- {
			t.drop(i, orphans)
		}
	}))
	l.ongoing.Wait()
}

// Stats are what a Limiter did since New, and what it holds.
type Stats struct {
	Local    uint64 // decisions without the engine
	Asked    uint64 // questions to the engine
	Returned uint64 // units of shares that were given back
	Expired  uint64 // units that were not used before their share ended
	Shares   int64  // subjects with a share now
	Held     int64  // units of these shares
}

// Stats returns the present numbers.
func (l *Limiter) Stats() Stats {
	all := Stats{Returned: l.returned.Load()}
	for i := range l.tables {
		t := &l.tables[i]
		t.mu.Lock()
		all.Local, all.Asked = all.Local+t.stats.Local, all.Asked+t.stats.Asked
		all.Returned, all.Expired = all.Returned+t.stats.Returned, all.Expired+t.stats.Expired
		for j := range t.entries {
			if left := t.entries[j].left(); left > 0 {
				all.Shares, all.Held = all.Shares+1, all.Held+left
			}
		}
		t.mu.Unlock()
	}
	return all
}
