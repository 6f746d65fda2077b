package transport

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

const (
	// longestJitter bounds the jitter of a request that was refused several times.
	longestJitter = 30 * time.Second

	refundTimeout = 500 * time.Millisecond
)

// admit waits until the request may be sent: until its key is free, and the plan has room.
// It returns the time at which the key was asked.
func (c *call) admit() (allowed time.Time, err error) {
	var turn *ratelimit.Decision // of the plan
	for {
		s, free, now := c.states.ask(c.key)
		if !free {
			if err := c.wait(s, now); err != nil {
				c.giveBack(turn)
				return now, err
			}
			if turn != nil && time.Now().Unix() >= turn.States[0].Reset {
				// The pause began after the turn, and has outlasted its window.
				c.giveBack(turn)
				turn = nil
			}
			continue
		}
		if c.plan == nil || turn != nil {
			return now, nil
		}
		if turn, err = c.takeTurn(); err != nil || !s.until.IsZero() { // a probe does not ask again
			return now, err
		}
	}
}

// wait waits until the key can be asked again, or returns why the request does not wait.
func (c *call) wait(s state, now time.Time) error {
	if limit := c.impatience(s, now); limit != nil {
		return limit
	}
	next := s.until
	if s.probe.Before(next) {
		next = s.probe
	}
	return c.sleep(next.Sub(now))
}

// impatience returns why the request does not wait for the end of a state; nil if it does.
func (c *call) impatience(s state, now time.Time) *LimitError {
	wait := s.until.Sub(now)
	switch {
	case s.banned:
		return c.limitError(s, "the Transport does not wait for the end of a ban", nil)
	case c.deadlineBefore(s.until), c.waited+wait+wait/10 > c.maxWait:
		return c.tooLong(s)
	}
	return nil
}

// tooLong is the error of a request that does not wait for the end of a state, since its
// deadline or MaxWait is earlier.
func (c *call) tooLong(s state) *LimitError {
	if c.deadlineBefore(s.until) {
		return c.limitError(s, "the deadline of the request is earlier", context.DeadlineExceeded)
	}
	return c.limitError(s, fmt.Sprintf("the request would wait longer than Options.MaxWait (%v)", c.maxWait), nil)
}

func (c *call) deadlineBefore(t time.Time) bool {
	deadline, ok := c.request.Context().Deadline()
	return ok && !deadline.After(t)
}

func (c *call) limitError(s state, reason string, cause error) *LimitError {
	return &LimitError{
		Until: s.until, Banned: s.banned, Status: s.status, Code: s.code, Message: s.message,
		host: c.request.URL.Host, reason: reason, cause: cause,
	}
}

// sleep waits for a time and a random time more, as far as MaxWait and the deadline of the
// request leave room.
func (c *call) sleep(wait time.Duration) error {
	ctx := c.request.Context()
	room := c.maxWait - c.waited - wait
	if deadline, ok := ctx.Deadline(); ok {
		room = min(room, time.Until(deadline)-wait)
	}
	wait += c.random(max(min(c.mostJitter(wait), room), 0))
	c.waited += wait
	select {
	case <-time.After(wait):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// mostJitter returns the longest random time that is added to wait, so that many clients
// do not return at the same instant: a tenth of it, which doubles with each denial of the
// request.
func (c *call) mostJitter(wait time.Duration) time.Duration {
	most := wait / 10
	for range c.denials - 1 {
		most = max(most, min(2*most, longestJitter))
	}
	return most
}

// takeTurn waits until the client's own plan has room, and charges it.
func (c *call) takeTurn() (*ratelimit.Decision, error) {
	d, err := c.waitForTurn()
	switch {
	case err == nil && d.Allowed():
		return &d, nil
	case c.request.Context().Err() != nil:
		return nil, context.Cause(c.request.Context())
	case err != nil && (d.Plan == nil || errors.Is(err, ratelimit.ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded)):
		return nil, fmt.Errorf("transport: Options.Limiter cannot decide: %w", err)
	}
	return nil, c.tooLong(state{until: time.Now().Add(d.RetryAfter)})
}

// waitForTurn returns the decision of the plan. If the request does not wait any more, it
// asks the engine once: the time that an engine takes to answer is not a wait.
func (c *call) waitForTurn() (ratelimit.Decision, error) {
	left := c.maxWait - c.waited
	if left <= 0 {
		return c.limiter.Take(c.request.Context(), c.subject(), c.plan.WithoutPenalty(), 1)
	}
	ctx, cancel := context.WithTimeout(c.request.Context(), left)
	defer cancel()
	begin := time.Now()
	defer func() { c.waited += time.Since(begin) }()
	return c.waiter.Wait(ctx, c.subject(), c.plan, 1)
}

// giveBack gives back the unit of a request that was not sent, as far as its windows are
// open. Nil: there is none.
func (c *call) giveBack(turn *ratelimit.Decision) {
	if turn == nil || c.adjuster == nil {
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.request.Context()), refundTimeout)
	defer cancel()
	// If this fails, the unit stays charged, and the client sends less than it may.
	_ = c.adjuster.Adjust(ctx, c.subject(), turn, 0, "")
}

// subject is what Options.Plan is counted for. The prefix keeps it apart from the
// subjects of a server that uses the same engine.
func (c *call) subject() string { return "call:" + c.key }
