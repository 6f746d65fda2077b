package ululelimit

import (
	"context"
	"errors"
	"fmt"

	"github.com/ulule/limiter/v3"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// StoreOptions are options of a [Store]. The zero value works.
type StoreOptions struct {
	// Prefix begins the subjects of the engine, and separates several stores on one
	// engine. With "network:" the key 192.0.2.1 is network:60:192.0.2.1 under all rates
	// of a minute, and network:3600:192.0.2.1 under limits of an hour.
	Prefix string

	// Penalty is for keys that keep sending requests after they were denied.
	// While a key is banned it is Reached, and Reset is not before the end of the
	// ban. The first request over the limit in a window is not a strike. The zero Penalty
	// never bans.
	Penalty ratelimit.Penalty
}

// A Store is a ulule store that counts in a [ratelimit.Limiter]. It is made by
// [NewStore], and is safe for concurrent use. It starts no goroutine, and needs no
// Close.
//
// Errors wrap [ratelimit.ErrInvalid] if the rate cannot be counted. They wrap
// [errors.ErrUnsupported] if the engine is not an [engine.Adjuster] and the count of an
// Increment is negative, and otherwise what the engine returned.
//
// # What differs from ulule's own stores
//
// ulule distinguishes a key that has used its limit (Remaining 0) from one that sent
// a request after that (Reached), in Peek as well. So the engine has to count the
// first denied request: the limit of its plan is one more than the rate's. The
// request that takes this last unit, and all after it, are Reached. A
// [limiter.Context] then shows the same as with ulule's own stores, with one call of
// the engine for each Get. It differs from those stores in these points:
//
//   - The engine has its own windows, mostly aligned to the UTC clock, and Reset is
//     rounded up instead of down.
//   - The count stops at one over the limit. Therefore a limit that is raised in the
//     middle of a window, and an Increment by a negative count, take effect
//     immediately, however many requests were denied before.
//   - Two rates of different periods under one key are counted apart, each with
//     strikes and a ban of its own. Two rates of one period share the usage, as
//     they do with ulule.
//   - Periods are whole seconds, up to 366 days.
//   - With a penalty in [StoreOptions], keys that keep sending requests are banned.
//   - An engine with rolling windows, such as ratelimit/redisrate, gives the last unit
//     back like every other. A client that never pauses takes it each time, and is
//     not admitted before it pauses.
type Store struct {
	engine   countingEngine
	adjuster engine.Adjuster // nil: the engine cannot
	plans    plans
}

var _ limiter.Store = (*Store)(nil)

// A countingEngine can do what every ulule store can.
type countingEngine interface {
	ratelimit.Limiter
	engine.Peeker
	Reset(ctx context.Context, subject string) error
}

// NewStore returns a store that counts in l, an engine that has Peek and Reset as
// well, as all of Gatehouse's have.
func NewStore(l ratelimit.Limiter, opts StoreOptions) (*Store, error) {
	counting, ok := l.(countingEngine)
	if !ok || nilvalue.InEngine(l) {
		return nil, fmt.Errorf("ululelimit: NewStore needs an engine with Take, Peek and Reset that its New has made, got %T", l)
	}
	s := &Store{engine: counting}
	s.adjuster, _ = l.(engine.Adjuster)
	if err := s.plans.init(opts.Prefix, opts.Penalty); err != nil {
		return nil, fmt.Errorf("ululelimit: StoreOptions.Penalty: %w", err)
	}
	return s, nil
}

// Get implements [limiter.Store]: it counts a request.
func (s *Store) Get(ctx context.Context, key string, rate limiter.Rate) (limiter.Context, error) {
	plan, err := s.plans.of(rate)
	if err != nil {
		return limiter.Context{}, err
	}
	d, err := s.charge(ctx, plan.key(key), plan.Plan, 1)
	return result("get", &d, err, rate)
}

// Increment implements [limiter.Store]. It charges as much of the count as there is
// room for: a count over the limit exhausts the limit. A negative count gives units
// back, in the present window.
func (s *Store) Increment(ctx context.Context, key string, count int64, rate limiter.Rate) (limiter.Context, error) {
	plan, err := s.plans.of(rate)
	if err != nil {
		return limiter.Context{}, err
	}
	var d ratelimit.Decision
	switch subject := plan.key(key); {
	case count > 0:
		d, err = s.charge(ctx, subject, plan.Plan, count)
	case count < 0:
		d, err = s.refund(ctx, subject, plan.Plan, count)
	default:
		d, err = s.engine.Peek(ctx, subject, plan.Plan)
	}
	return result("increment", &d, err, rate)
}

// Peek implements [limiter.Store]. It counts nothing.
func (s *Store) Peek(ctx context.Context, key string, rate limiter.Rate) (limiter.Context, error) {
	plan, err := s.plans.of(rate)
	if err != nil {
		return limiter.Context{}, err
	}
	d, err := s.engine.Peek(ctx, plan.key(key), plan.Plan)
	return result("peek", &d, err, rate)
}

// Reset implements [limiter.Store]. It deletes the usage, the strikes and the ban of
// the key under all rates of this period.
func (s *Store) Reset(ctx context.Context, key string, rate limiter.Rate) (limiter.Context, error) {
	plan, err := s.plans.of(rate)
	if err != nil {
		return limiter.Context{}, err
	}
	var d ratelimit.Decision
	if err = s.engine.Reset(ctx, plan.key(key)); err == nil {
		d, err = s.engine.Peek(ctx, plan.key(key), plan.Plan)
	}
	return result("reset", &d, err, rate)
}

// charge takes count units, or as many as are left.
func (s *Store) charge(ctx context.Context, subject string, plan *ratelimit.Plan, count int64) (ratelimit.Decision, error) {
	cost := min(count, engine.Of(plan).Quota(0).Limit)
	for {
		d, err := s.engine.Take(ctx, subject, plan, cost)
		left := d.States[0].Remaining
		if err != nil || d.Outcome != ratelimit.Limited || left == 0 || left >= cost {
			return d, err
		}
		// Other calls may take some of what is left first. Then less is left, so that
		// this loop ends.
		cost = left
	}
}

func (s *Store) refund(ctx context.Context, subject string, plan *ratelimit.Plan, count int64) (ratelimit.Decision, error) {
	if s.adjuster == nil {
		return ratelimit.Decision{}, fmt.Errorf("engine %T has no Adjust: %w", s.engine, errors.ErrUnsupported)
	}
	d, err := s.engine.Peek(ctx, subject, plan)
	if err != nil {
		return d, err
	}
	// The units were charged in the present window, by the engine's clock.
	d.Outcome, d.Cost = ratelimit.Allowed, -max(count, -engine.Of(plan).Quota(0).Limit)
	if err := s.adjuster.Adjust(ctx, subject, &d, 0, ""); err != nil {
		return d, err
	}
	return s.engine.Peek(ctx, subject, plan)
}

// result returns what ulule shows of a decision under a plan with one unit more than
// the rate has.
func result(doing string, d *ratelimit.Decision, err error, rate limiter.Rate) (limiter.Context, error) {
	if err != nil {
		return limiter.Context{}, fmt.Errorf("ululelimit: %s: %w", doing, err)
	}
	left := d.Remaining()
	return limiter.Context{
		Limit:     rate.Limit,
		Remaining: max(left-1, 0),
		Reset:     d.Reset(),
		Reached:   left == 0 || !d.Allowed(),
	}, nil
}
