package ratelimittest

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Peek implements [ratelimit.Peeker]. It is not recorded.
func (r *Recorder) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	p, ok := r.limiter.(ratelimit.Peeker)
	if err := r.check(ok, "Peeker"); err != nil {
		return ratelimit.Decision{}, err
	}
	return p.Peek(ctx, subject, plan)
}

// Adjust implements [ratelimit.Adjuster]. It is not recorded.
func (r *Recorder) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	a, ok := r.limiter.(ratelimit.Adjuster)
	if err := r.check(ok, "Adjuster"); err != nil {
		return err
	}
	return a.Adjust(ctx, subject, d, units, id)
}

// Ban implements [ratelimit.Banner]. It is not recorded.
func (r *Recorder) Ban(ctx context.Context, subject string, length time.Duration) error {
	b, ok := r.limiter.(ratelimit.Banner)
	if err := r.check(ok, "Banner"); err != nil {
		return err
	}
	return b.Ban(ctx, subject, length)
}

// Unban implements [ratelimit.Banner]. It is not recorded.
func (r *Recorder) Unban(ctx context.Context, subject string) (bool, error) {
	b, ok := r.limiter.(ratelimit.Banner)
	if err := r.check(ok, "Banner"); err != nil {
		return false, err
	}
	return b.Unban(ctx, subject)
}

// Bans implements [ratelimit.Banner]. It is not recorded.
func (r *Recorder) Bans(ctx context.Context) ([]ratelimit.Ban, error) {
	b, ok := r.limiter.(ratelimit.Banner)
	if err := r.check(ok, "Banner"); err != nil {
		return nil, err
	}
	return b.Bans(ctx)
}

// Reset implements [ratelimit.Resetter]. It is not recorded.
func (r *Recorder) Reset(ctx context.Context, subject string) error {
	f, ok := r.limiter.(ratelimit.Resetter)
	if err := r.check(ok, "Resetter"); err != nil {
		return err
	}
	return f.Reset(ctx, subject)
}

// check returns the error of a call to a capability.
func (r *Recorder) check(has bool, capability string) error {
	if !has {
		return fmt.Errorf("ratelimittest: %T does not implement ratelimit.%s: %w", r.limiter, capability, errors.ErrUnsupported)
	}
	_, err := r.state()
	return err
}
