package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/internal/nilvalue"
)

// A Waiter delays requests until they are admitted, where [Limiter.Take] denies them.
// It is meant for jobs and for calls of other services:
//
//	waiter := ratelimit.NewWaiter(limiter)
//	...
//	if _, err := waiter.Wait(ctx, "job:reindex", plan, 1); err != nil {
//		return err
//	}
//
// Requests of one subject that have to wait form a queue, and are admitted in the order in
// which they arrived, also if a later one costs less. Only the first in the queue calls the
// engine: when it becomes the first, and when the RetryAfter of the denial is over. It also
// calls once a minute, so that a longer wait ends early if units were given back or a ban was
// ended by hand. The others cause no calls while they wait.
//
// A Waiter uses plans without their penalty, so that no request is a strike. If the
// subject is banned, by hand or under another plan, it waits until the ban ends.
//
// A Waiter charges one subject. A job that several are charged for, such as a user and an
// organisation, calls [TakeAll] with plans without a penalty ([Plan.WithoutPenalty]). While
// the decision that engine.Deciding finds has a RetryAfter, it sleeps for that time and calls
// TakeAll again.
//
// Each Waiter has queues of its own, in this process. Between several processes that
// share an engine, the limits hold, but not the order. A subject that no request waits
// for takes no memory. A Waiter is safe for concurrent use.
type Waiter struct {
	limiter Limiter

	mu     sync.Mutex
	queues map[string]*queue // by subject; none is empty
}

// NewWaiter returns a Waiter in front of l. It panics if l is nil or a nil pointer.
func NewWaiter(l Limiter) *Waiter {
	if nilvalue.InEngine(l) {
		panic("ratelimit: NewWaiter: the limiter must not be nil or the zero memory.Limiter")
	}
	return &Waiter{limiter: l, queues: make(map[string]*queue)}
}

// Wait charges cost units to subject under plan, as [Limiter.Take] does, and returns
// the decision that admitted the request. If there is no room, it waits until there is,
// or until ctx ends.
//
// An error means that the request was not admitted. It is
//
//   - the error of ctx, once ctx has ended;
//   - an error that wraps [context.DeadlineExceeded], immediately, if the request cannot be
//     admitted before the deadline of ctx;
//   - an error that wraps [ErrInvalid] if the call is invalid;
//   - an error of the engine, which all requests that wait for the subject get;
//   - another error if the plan is suspended, or the denial names no time to wait for.
//
// If the request was denied, the Decision that comes with the error is the latest
// denial in the queue, of this request or of one ahead of it. Its RetryAfter counts
// from the return of Wait.
func (w *Waiter) Wait(ctx context.Context, subject string, plan *Plan, cost int64) (Decision, error) {
	if err := ctx.Err(); err != nil {
		return Decision{}, err
	}
	if d, err := plan.decide(subject, cost); err != nil || d.Outcome != 0 {
		if err == nil && !d.Allowed() {
			err = hopeless(&d, time.Time{})
		}
		return d, err
	}
	plan = plan.WithoutPenalty()
	deadline, _ := ctx.Deadline()
	t := w.join(subject, deadline, nil)
	if t == nil { // nobody waits: the request may not have to
		d, err := w.limiter.Take(ctx, subject, plan, cost)
		if err == nil && !d.Allowed() {
			err = hopeless(&d, deadline)
		}
		if err != nil || d.Allowed() {
			return d, err
		}
		t = w.join(subject, deadline, &d)
	}
	defer w.leave(t)
	select {
	case <-t.called:
	case <-ctx.Done():
		return w.latest(t), ctx.Err()
	}
	if t.failure != nil {
		return w.latest(t), t.failure
	}
	return w.takeFirst(ctx, t, plan, cost, deadline)
}

// takeFirst asks the engine for t, which is first in its queue, until the request is admitted
// or need not wait any longer.
func (w *Waiter) takeFirst(ctx context.Context, t *ticket, plan *Plan, cost int64, deadline time.Time) (Decision, error) {
	for {
		if err := sleep(ctx, t.pause); err != nil {
			return w.latest(t), err
		}
		d, err := w.limiter.Take(ctx, t.subject, plan, cost)
		if err != nil {
			if ctx.Err() == nil && !errors.Is(err, ErrInvalid) {
				w.failOthers(t, err)
			}
			return w.latest(t), err
		}
		if d.Allowed() {
			return d, nil
		}
		w.denied(t, &d)
		if err := hopeless(&d, deadline); err != nil {
			return d, err
		}
	}
}

// hopeless returns the error for a request whose denial d cannot be waited for.
func hopeless(d *Decision, deadline time.Time) error {
	switch {
	case d.RetryAfter <= 0:
		return fmt.Errorf("ratelimit: the request is %v, and waiting does not change that", d.Outcome)
	case deadline.IsZero() || time.Now().Add(d.RetryAfter).Before(deadline):
		return nil
	}
	return errTooLate
}

var errTooLate = fmt.Errorf("ratelimit: the request cannot be admitted before the deadline of its context: %w", context.DeadlineExceeded)

// sleep sleeps for d, or until ctx ends, and then returns its error.
func sleep(ctx context.Context, d time.Duration) error {
	select {
	case <-time.After(d):
	case <-ctx.Done():
	}
	return ctx.Err()
}
