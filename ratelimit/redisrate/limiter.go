package redisrate

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/go-redis/redis_rate/v10"

	"github.com/animalstore/gatehouse/ratelimit"
)

// MaxRate is how many units a second a quota may allow at most.
const MaxRate = 100_000

// A Limiter decides in Redis through redis_rate. It is made by [New]. It may be
// used by any number of goroutines. It starts none, and needs no closing.
type Limiter struct {
	rate      *redis_rate.Limiter
	keyspaces []keyspace
	now       func() time.Time
}

var _ interface {
	ratelimit.Limiter
	ratelimit.Peeker
	ratelimit.Resetter
} = (*Limiter)(nil)

// New returns an engine that keeps its state where limiter does.
func New(limiter *redis_rate.Limiter, opts Options) (*Limiter, error) {
	if limiter == nil {
		return nil, errors.New("redisrate: New: no limiter")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	opts.setDefaults()
	l := &Limiter{rate: limiter, now: opts.Now}
	for _, w := range opts.Windows {
		l.keyspaces = append(l.keyspaces, newKeyspace(opts.Prefix, w))
	}
	return l, nil
}

// Check tells whether requests can be decided under plan. A service calls it
// for each of its plans when it starts; [Limiter.Take] returns the same error,
// which wraps [ratelimit.ErrInvalid].
func (l *Limiter) Check(plan *ratelimit.Plan) error {
	_, err := l.keyspace("any", plan, 1)
	return err
}

func (l *Limiter) keyspace(subject string, plan *ratelimit.Plan, cost int64) (*keyspace, error) {
	if err := plan.Check(subject, cost); err != nil {
		return nil, err
	}
	if plan.Len() > 1 {
		return nil, fmt.Errorf("%w: redisrate decides one quota at a time, plan %v has %d", ratelimit.ErrInvalid, plan, plan.Len())
	}
	q := plan.Quota(0)
	if q.Limit > MaxRate*int64(q.Window/time.Second) {
		return nil, fmt.Errorf("%w: redisrate cannot hold %v: more than %d a second", ratelimit.ErrInvalid, q, MaxRate)
	}
	if q.Limit > math.MaxInt {
		return nil, fmt.Errorf("%w: redisrate cannot hold %v: an int of redis_rate holds at most %d here", ratelimit.ErrInvalid, q, math.MaxInt)
	}
	for i := range l.keyspaces {
		if l.keyspaces[i].window == q.Window {
			return &l.keyspaces[i], nil
		}
	}
	return nil, fmt.Errorf("%w: the window of %v is not among redisrate's Options.Windows", ratelimit.ErrInvalid, q)
}

// Take implements [ratelimit.Limiter]. Errors of Redis and of ctx wrap
// [ratelimit.ErrUnavailable]; whether the request was charged is then unknown,
// as it is with every call whose reply is lost.
func (l *Limiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	k, err := l.keyspace(subject, plan, cost)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	result, err := l.rate.AllowN(ctx, k.key(subject), limit(plan), int(cost))
	if err != nil {
		return ratelimit.Decision{}, unavailable("take", err)
	}
	return decision(plan, cost, l.now(), result.ResetAfter, result.Allowed > 0), nil
}

// Peek implements [ratelimit.Peeker].
func (l *Limiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	k, err := l.keyspace(subject, plan, 1)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	// To allow nothing writes the state back as it was.
	result, err := l.rate.AllowN(ctx, k.key(subject), limit(plan), 0)
	if err != nil {
		return ratelimit.Decision{}, unavailable("peek", err)
	}
	free := remaining(plan.Quota(0), result.ResetAfter) > 0
	return decision(plan, 1, l.now(), result.ResetAfter, free), nil
}

// Reset implements [ratelimit.Resetter] for the windows of [Options], with a
// round trip for each. If it fails, some may be forgotten and others not.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	if subject == "" {
		return fmt.Errorf("redisrate: reset: %w: no subject", ratelimit.ErrInvalid)
	}
	for i := range l.keyspaces {
		if err := l.rate.Reset(ctx, l.keyspaces[i].key(subject)); err != nil {
			return unavailable("reset", err)
		}
	}
	return nil
}

// limit is the plan's quota in the terms of redis_rate. The burst is the limit:
// a subject that has used nothing may use all of it at once.
func limit(plan *ratelimit.Plan) redis_rate.Limit {
	q := plan.Quota(0)
	return redis_rate.Limit{Rate: int(q.Limit), Burst: int(q.Limit), Period: q.Window}
}

func unavailable(doing string, err error) error {
	return fmt.Errorf("redisrate: %s: %w: %w", doing, ratelimit.ErrUnavailable, err)
}
