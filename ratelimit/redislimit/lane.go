package redislimit

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"time"
)

// A lane is the way to one master. A call that finds nothing under way leaves at
// once. Those that come while a batch is under way wait together for the next
// one, which leaves when the last one is back. Few large batches cost the least,
// so that more are under way at once only where the way is long, or something is
// stuck on it.
type lane struct {
	limit int // of flights
	send  func([]*group)

	mu      sync.Mutex
	waiting []*batch // the first one leaves first, the last one takes in calls
	spare   *batch   // an empty one, or nil
	flights int      // batches under way
	left    time.Time
	trip    time.Duration // how long a batch is under way, smoothed
}

// spacing is the time in which a round trip is short. A longer one has room for
// one more batch for each spacing.
const spacing = 250 * time.Microsecond

// yields is how often a batch that is back lets others run before the next one
// leaves. Once is not enough: a processor that was idle takes the batch up again
// before the callers have run.
const yields = 3

// ask waits for the answer to a question. It returns the group in which it was
// asked, or the context's error as soon as the context ends.
func (l *lane) ask(ctx context.Context, q question, c *call) (*group, error) {
	g, b := l.join(q, c)
	if ctx.Done() == nil { // the caller has to wait for the answer anyhow
		if b != nil {
			l.carry(b)
		}
		<-c.ready
		return g, nil
	}
	if b != nil {
		go l.carry(b)
	}
	select {
	case <-c.ready:
		return g, nil
	case <-ctx.Done():
		if l.leave(g, c, ctx.Err()) {
			return nil, ctx.Err()
		}
		<-c.ready
		return g, nil
	}
}

// join enters a call. It returns the batch that leaves now, if one does: it is for
// the caller to carry.
func (l *lane) join(q question, c *call) (*group, *batch) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if n := len(l.waiting); n == 0 || len(l.waiting[n-1].groups) >= maxGroups {
		b := l.spare
		if l.spare = nil; b == nil {
			b = new(batch)
		}
		l.waiting = append(l.waiting, b)
	}
	g := l.waiting[len(l.waiting)-1].add(q, c)
	if !l.mayLeave() {
		return g, nil
	}
	l.flights++
	return g, l.next()
}

// mayLeave reports whether one more batch may be under way.
func (l *lane) mayLeave() bool {
	switch {
	case l.flights == 0:
		return true
	case l.flights >= l.limit:
		return false
	}
	return l.trip > time.Duration(l.flights)*spacing || time.Since(l.left) > spacing
}

// leave withdraws a call whose caller no longer waits, because of err: one that was
// not yet sent is not made. Of one that was sent, and whose time is up, the answer
// comes too late, unless it is there by now, which leave then denies. It stays as it
// is if the caller cancelled, so that requests abandoned by the client stay charged.
func (l *lane) leave(g *group, c *call, err error) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !g.sent {
		c.left = true
		return true
	}
	if !errors.Is(err, context.DeadlineExceeded) {
		c.state.CompareAndSwap(waiting, abandoned)
		return true
	}
	return c.state.CompareAndSwap(waiting, overdue)
}

// next takes the batch that leaves now, nil if no call waits.
func (l *lane) next() *batch {
	for len(l.waiting) > 0 {
		b := l.waiting[0]
		l.waiting = append(l.waiting[:0], l.waiting[1:]...)
		if b.seal() {
			b.left = time.Now()
			l.left = b.left
			return b
		}
		b.empty()
		l.spare = b
	}
	return nil
}

// waitingCalls returns how many calls wait for the next batch.
func (l *lane) waitingCalls() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.waiting) == 0 {
		return 0
	}
	return l.waiting[0].calls
}

// carry sends a batch, and has the next one leave.
func (l *lane) carry(b *batch) {
	l.send(b.groups)
	trip := time.Since(b.left)
	// Let those who have their answers ask again, so that they travel together,
	// and not in parts that take turns.
	for i := 0; i < yields && b.calls > 1 && l.waitingCalls() < b.calls; i++ {
		runtime.Gosched()
	}
	b.empty()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.spare = b
	l.trip += (trip - l.trip) / 8
	if b := l.next(); b != nil {
		go l.carry(b)
	} else {
		l.flights--
	}
}
