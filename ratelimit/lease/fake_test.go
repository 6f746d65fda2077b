package lease

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A counted engine counts the questions of requests, and fails if it has an error.
type counted struct {
	*memory.Limiter
	calls  atomic.Int64
	err    error
	before func(context.Context) // what happens once, while it is asked
	each   func(what string)     // what happens before and after each question of a request or share

	givenBack int64 // what Restore returns
	restored  int   // how often it was called
}

func (c *counted) ask(ctx context.Context) error {
	c.calls.Add(1)
	if f := c.before; f != nil {
		c.before = nil
		f(ctx)
	}
	return c.err
}

func (c *counted) step(what string, asks bool) {
	if c.each != nil && asks {
		c.each(what)
	}
}

func newCounted(now func() time.Time) *counted {
	l, err := memory.New(memory.Options{Now: now})
	if err != nil {
		panic(err)
	}
	return &counted{Limiter: l}
}

func (c *counted) Take(ctx context.Context, subject string, p *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if err := c.ask(ctx); err != nil {
		return ratelimit.Decision{}, err
	}
	c.step("ask", true)
	defer c.step("answer", true)
	return c.Limiter.Take(ctx, subject, p, cost)
}

func (c *counted) Lease(ctx context.Context, subject string, p *ratelimit.Plan, cost int64, terms engine.Terms) (ratelimit.Decision, error) {
	if err := c.ask(ctx); err != nil {
		return ratelimit.Decision{}, err
	}
	asks := cost > 0 || terms.More > 0 || terms.Back == nil
	c.step("ask", asks)
	defer c.step("answer", asks)
	return c.Limiter.Lease(ctx, subject, p, cost, terms)
}

// Restore charges what the engine has lost, of the plan many.
func (c *counted) Restore(ctx context.Context, subject string, known *ratelimit.Decision) (givenBack int64, err error) {
	d, err := c.Peek(ctx, subject, many)
	if missing := d.States[0].Remaining - known.States[0].Remaining - c.givenBack; err == nil && missing > 0 {
		_, err = c.Limiter.Take(ctx, subject, many, missing)
	}
	c.restored++
	return c.givenBack, err
}
