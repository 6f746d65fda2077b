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

// admit waits until the request may be sent: until its key is not paused, and the plan
// has room. It reports whether the request is the probe of a pause.
func (c *call) admit() (probe bool, err error) {
	var turn *ratelimit.Decision // of the plan
	for {
		paused := false
		if !probe {
			if probe, paused, err = c.passPause(); err != nil {
				c.giveBack(turn)
				return false, err
			}
		}
		switch {
		case paused && turn != nil && time.Now().Unix() >= turn.States[0].Reset:
			// The pause began after the turn, and has outlasted its window.
			c.giveBack(turn)
			turn = nil
		case paused:
		case c.plan == nil || turn != nil:
			return probe, nil
		default:
			if turn, err = c.takeTurn(); err != nil {
				return false, err
			}
		}
	}
}

// passPause waits for the end of the pause of the key, if there is one. If it has
// waited, paused is true, and another pause may have begun.
func (c *call) passPause() (probe, paused bool, err error) {
	now := time.Now()
	p, paused, probe := c.pauses.at(c.key, now)
	if !paused || probe {
		return probe, false, nil
	}
	if limit := c.impatience(p, now); limit != nil {
		return false, true, limit
	}
	return false, true, c.sleep(p.until.Sub(now))
}

// impatience returns why the request does not wait for the end of the pause; nil if it
// does.
func (c *call) impatience(p pause, now time.Time) *LimitError {
	wait := p.until.Sub(now)
	switch {
	case p.refusal.banned:
		return c.limitError(p, "the Transport does not wait for the end of a ban", nil)
	case c.waited+wait+wait/10 > c.maxWait:
		return c.limitError(p, c.tooLong(), nil)
	case c.deadlineBefore(p.until):
		return c.limitError(p, tooLate, context.DeadlineExceeded)
	}
	return nil
}

const tooLate = "the deadline of the request is earlier"

func (c *call) tooLong() string {
	return fmt.Sprintf("the request would wait longer than Options.MaxWait (%v)", c.maxWait)
}

func (c *call) deadlineBefore(t time.Time) bool {
	deadline, ok := c.request.Context().Deadline()
	return ok && !deadline.After(t)
}

func (c *call) limitError(p pause, reason string, cause error) *LimitError {
	return &LimitError{
		host:    c.request.URL.Host,
		Until:   p.until,
		Banned:  p.refusal.banned,
		Status:  p.status,
		Code:    p.refusal.code,
		Message: p.refusal.message,
		reason:  reason,
		cause:   cause,
	}
}

// sleep waits for the end of a pause and a random time more, as far as MaxWait and the
// deadline of the request leave room.
func (c *call) sleep(wait time.Duration) error {
	ctx := c.request.Context()
	room := c.maxWait - c.waited - wait
	if deadline, ok := ctx.Deadline(); ok {
		room = min(room, time.Until(deadline)-wait)
	}
	wait += c.random(max(min(c.mostJitter(wait), room), 0))
	c.waited += wait
	if c.onWait != nil {
		c.onWait(c.request, wait)
	}
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
	p := pause{until: time.Now().Add(d.RetryAfter)}
	if c.deadlineBefore(p.until) {
		return nil, c.limitError(p, tooLate, context.DeadlineExceeded)
	}
	return nil, c.limitError(p, c.tooLong(), nil)
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
