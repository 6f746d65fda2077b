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
	engine.Banner
	Reset(ctx context.Context, subject string) error
}

// A Limiter decides with shares of what a shared engine has left. It is made by [New], and
// is safe for concurrent use.
//
// A share ends before the first of its windows does, by the clock of the process. The end is
// t + (E − S) / 1.1, where t is when the process asked, S the engine's time in the answer, and
// E the end of the window. So the two clocks may drift apart by a tenth. A process that was
// stopped finds that its shares have ended. The monotonic clock stands still while a machine is
// suspended, and the wall clock does not; a share ends by the one that went further. It can end
// too late only if a machine is suspended, and its wall clock is set back before any process
// reads it.
type Limiter struct {
	shared     shared
	seed       maphash.Seed
	read       func() reading // of the clocks
	tables     [tables]table
	background func(func()) // runs a function

	close   sync.Once
	closing sync.RWMutex
	closed  bool
	stop    chan struct{}  // ends the sweeps
	ongoing sync.WaitGroup // the sweeps, and what runs in the background
}

// New returns a Limiter in front of an engine, which must be able to do all that the engines of
// ratelimit/redislimit and ratelimit/memory can do. Make it once: each one has shares of its
// own. It has a goroutine, which [Limiter.Close] ends. It is not an [engine.Holder]: behind package
// failover, a limit with limit.Options.Hold answers each request with 500.
func New(e ratelimit.Limiter) (*Limiter, error) {
	if nilvalue.InEngine(e) {
		return nil, errors.New("lease: New needs an engine, got nil or the zero memory.Limiter")
	}
	s, ok := e.(shared)
	if !ok {
		return nil, fmt.Errorf("lease: the engine must be an engine.Leaser with all that the engines of memory and redislimit can do, got a %T", e)
	}
	l := newLimiter(s, system)
	l.ongoing.Go(func() {
		tick := time.NewTicker(time.Second / 2)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				l.sweep(false)
			case <-l.stop:
				return
			}
		}
	})
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

// table returns the hash of a subject and its table. As in package memory, two subjects may
// have one hash: the chance is one in ten billion if all tables are full.
func (l *Limiter) table(subject string) (uint64, *table) {
	h := maphash.String(l.seed, subject)
	return h, &l.tables[h%tables]
}

// Take implements [ratelimit.Limiter]. A request that also gives units back waits for the engine
// although ctx is cancelled, until the deadline of ctx: package failover sets one.
func (l *Limiter) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if p == nil || engine.Of(p).Len() == 0 || engine.Of(p).Smooth() || p.Check(subject, cost) != nil {
		l.forget(subject)
		return l.shared.Take(ctx, subject, p, cost)
	}
	err = l.take(ctx, subject, p, cost, false, &d)
	return d, err
}

// take decides into d. If checked, the engine was asked about the share just now.
func (l *Limiter) take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64, checked bool, d *ratelimit.Decision) (err error) {
	h, t := l.table(subject)
	r := l.read() // before the lock: two readings take longer than a decision
	t.mu.Lock()
	now := t.clock.at(r)
	e := t.entry(h, subject, p, now, cost)
	if e == nil {
		t.stats.Asked++
		l.unlock(t)
		if *d, err = l.shared.Take(ctx, subject, p, cost); err == nil && !d.Allowed() {
			t.mu.Lock()
			t.add(h, subject, p, now, 0) // so that the next denial is remembered
			l.unlock(t)
		}
		return err
	}
	if !checked {
		e.count(now, cost)
	}
	d.Plan = p
	switch e.decide(now, cost, checked, d) {
	case renew:
		t.renew(e, now)
		fallthrough
	case answered:
		t.stats.Local++
		if e.kind == banned {
			d.Receipt.BanReason = t.reasons[h]
		}
		l.unlock(t)
		return nil
	case check:
		q := t.question(e, now, 0)
		l.unlock(t)
		if err = l.ask(ctx, &q, d); err != nil || d.Outcome != ratelimit.Banned {
			*d = ratelimit.Decision{}
			return l.take(ctx, subject, p, cost, true, d)
		}
		d.Cost = cost
		engine.Complete(d)
		return nil
	}
	q := t.question(e, now, cost)
	l.unlock(t)
	return l.ask(ctx, &q, d)
}

// ask asks the engine, and the table learns the answer, or that there was none: also if the
// engine panics.
func (l *Limiter) ask(ctx context.Context, q *question, d *ratelimit.Decision) (err error) {
	answered := false
	defer func() {
		h, t := l.table(q.subject)
		r := l.read()
		t.mu.Lock()
		if now := t.clock.at(r); answered {
			t.learn(h, q, d, now)
		} else {
			t.fail(h, q, now)
		}
		l.unlock(t)
	}()
	if q.take {
		*d, err = l.shared.Take(ctx, q.subject, q.plan, q.cost)
	} else {
		// If the engine stopped when the caller goes away, units would be lost.
		ctx, cancel := deadlineOnly(ctx)
		defer cancel()
		*d, err = l.shared.Lease(ctx, q.subject, q.plan, q.cost, q.terms)
	}
	answered = err == nil
	return err
}

// deadlineOnly returns a context that ends with the deadline of ctx, and is not cancelled before.
func deadlineOnly(ctx context.Context) (context.Context, context.CancelFunc) {
	if deadline, ok := ctx.Deadline(); ok {
		return context.WithDeadline(context.WithoutCancel(ctx), deadline)
	}
	return context.WithoutCancel(ctx), func() {}
}

// unlock unlocks a table, and then asks what the table has queued, in the background.
func (l *Limiter) unlock(t *table) {
	queue := t.queue
	t.queue = nil
	t.mu.Unlock()
	if len(queue) > 0 {
		l.background(func() { l.askAll(queue) })
	}
}

// start runs f on a goroutine that Close waits for. After Close it runs f itself.
func (l *Limiter) start(f func()) {
	l.closing.RLock()
	closed := l.closed
	if !closed {
		l.ongoing.Go(f)
	}
	l.closing.RUnlock()
	if closed {
		f()
	}
}

const (
	parallel = 64              // how many questions are asked at once
	patience = 2 * time.Second // how long all of them may take
)

// askAll asks the questions that no request waits for.
func (l *Limiter) askAll(queue []question) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	var next atomic.Int64
	work := func() {
		for i := next.Add(1); i <= int64(len(queue)); i = next.Add(1) {
			var d ratelimit.Decision
			_ = l.ask(ctx, &queue[i-1], &d)
		}
	}
	var others sync.WaitGroup
	for range min(len(queue), parallel) - 1 {
		others.Go(work)
	}
	work()
	others.Wait()
}

// sweep gives back the shares that are not used, or all of them when the Limiter closes.
func (l *Limiter) sweep(closes bool) {
	var queue []question
	for i := range l.tables {
		t := &l.tables[i]
		t.mu.Lock()
		t.sweep(t.clock.at(l.read()), closes)
		queue = append(queue, t.queue...)
		t.queue = nil
		t.mu.Unlock()
	}
	l.askAll(queue)
}

// Close gives back all shares, and then waits for what runs in the background: at most two
// seconds for each of the two, if the engine keeps deadlines. Afterwards the engine decides
// every request.
func (l *Limiter) Close() {
	l.close.Do(func() {
		l.closing.Lock()
		l.closed = true
		l.closing.Unlock()
		close(l.stop)
		l.sweep(true)
		l.ongoing.Wait()
	})
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
	var all Stats
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
