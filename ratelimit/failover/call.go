package failover

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A call is one call of the primary. It runs on a goroutine of its own, so that
// the caller can leave when the budget is spent, whatever the primary does.
// Calls are used again, unless the caller left.
type call struct {
	limiter *Limiter
	timer   *time.Timer
	start   func() // (*call).run; kept, since making it allocates
	done    chan struct{}
	verdict chan verdict // what became of the request whose caller left
	state   atomic.Uint32

	// What is asked, and the answer.
	ask      func(*call, context.Context) error
	ctx      *budget
	subject  string
	plan     *ratelimit.Plan
	cost     int64
	commands uint64 // by hand, before the call
	entry    *entry // to merge
	d        ratelimit.Decision
	err      error
}

// The states of a call: it ends as finished or as abandoned, whichever is first.
const (
	running = iota
	finished
	abandoned
)

func (l *Limiter) newCall() *call {
	if c, ok := l.calls.Get().(*call); ok {
		return c
	}
	c := &call{
		limiter: l,
		timer:   time.NewTimer(time.Hour),
		done:    make(chan struct{}, 1),
		verdict: make(chan verdict, 1),
	}
	c.timer.Stop()
	c.start = c.run
	return c
}

// release makes the call available to others.
func (l *Limiter) release(c *call) {
	c.ask, c.ctx, c.subject, c.plan, c.entry, c.err = nil, nil, "", nil, nil, nil
	l.calls.Put(c)
}

// wait does what c asks, and waits for it for at most the given time. If the
// caller leaves before the end, err says why: the time is up, or ctx has ended.
// A call that was left and is under way, which late says, still comes to an end
// and waits for a verdict; one that found no place was never made.
func (l *Limiter) wait(ctx context.Context, c *call, limit time.Duration) (late bool, err error) {
	c.timer.Reset(limit)
	defer c.timer.Stop()
	c.ctx = &budget{Context: ctx, deadline: time.Now().Add(limit)}
	select {
	case l.places <- struct{}{}:
	default:
		select {
		case l.places <- struct{}{}:
		case <-c.timer.C:
			return false, l.errBudget
		case <-ctx.Done():
			return false, ctx.Err()
		}
	}
	c.state.Store(running)
	go c.start()
	select {
	case <-c.done:
		return false, nil
	case <-c.timer.C:
		err = l.errBudget
	case <-ctx.Done():
		err = ctx.Err()
	}
	if !c.state.CompareAndSwap(running, abandoned) {
		<-c.done // it has just finished
		return false, nil
	}
	c.ctx.end(err)
	return true, err
}

func (c *call) run() {
	c.err = errExit
	defer c.finish()
	c.err = c.ask(c, c.ctx)
}

var errExit = errors.New("failover: the primary ended its goroutine")

// finish hands the answer over, or settles it if the caller has left. A panic of
// the primary is a failure of the primary and must not end the process.
func (c *call) finish() {
	if p := recover(); p != nil {
		c.err = fmt.Errorf("failover: %w: the primary panicked: %v\n%s", ratelimit.ErrUnavailable, p, debug.Stack())
	}
	c.ctx.end(context.Canceled)
	places := c.limiter.places
	if c.state.CompareAndSwap(running, finished) {
		<-places
		c.done <- struct{}{} // c may be another's from here on
		return
	}
	defer func() { <-places }()
	c.limiter.settle(c, <-c.verdict)
}

// The things to ask.

func askTake(c *call, ctx context.Context) (err error) {
	if err = c.limiter.merger.bring(ctx, c.subject); err == nil {
		c.d, err = c.limiter.primary.Take(ctx, c.subject, c.plan, c.cost)
	}
	return err
}

func askPeek(c *call, ctx context.Context) (err error) {
	if err = c.limiter.merger.bring(ctx, c.subject); err == nil {
		c.d, err = c.limiter.capable.peeker.Peek(ctx, c.subject, c.plan)
	}
	return err
}

func askMerge(c *call, ctx context.Context) error { return c.limiter.merger.merge(ctx, c.entry) }
