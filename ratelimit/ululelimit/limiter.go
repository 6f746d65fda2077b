package ululelimit

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/ulule/limiter/v3"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A Limiter decides in a ulule store. It is made by [New], and is safe for concurrent
// use. It starts no goroutine, and needs no Close.
//
// # What a ulule store cannot do
//
//   - Plans with several quotas are refused. Each quota would be a call of its own,
//     and a request that the second one refuses would have been charged to the first.
//   - Plans with calendar windows, such as [ratelimit.PerMonth], are refused, and plans
//     with smooth quotas.
//   - Windows are not aligned to the calendar. One begins with the first request
//     after the end of the one before.
//   - A denied request is charged. With a cost of 1 this makes no difference: the
//     quota was used up before. With a larger cost the rest of the quota is lost,
//     and if a limit is raised in the middle of a window, the denied requests count.
//   - Usage counts in the window of the plan alone. If the limit of a subject
//     changes, it keeps its usage; under a plan with another window its usage begins
//     at zero.
//   - There are no strikes, no bans and no refunds. The penalty of a plan is
//     ignored, and StrikesLeft is always -1.
//   - The store in memory holds any number of subjects, and its sweep may drop a
//     counter that has just started again.
//
// # What Limiter corrects
//
//   - ulule keeps one counter for each key, whatever the rate: with a rate for a
//     minute and one for a day on one store, the day ends with the minute. Here the
//     window is in the key.
//   - ulule rounds the time of a reset down to a second, so that clients come up to a
//     second early. Here Reset is the next whole second, at most one second late.
type Limiter struct {
	store     limiter.Store
	keyspaces []keyspace
}

var _ interface {
	ratelimit.Limiter
	engine.Peeker
	Reset(ctx context.Context, subject string) error
} = (*Limiter)(nil)

// New returns an engine that counts in store. It uses the clock of this machine, as
// ulule's stores do.
//
// The windows are those that quotas may have, whole seconds from 1s to 366 days. If none
// are given, they are a second, a minute, an hour and a day. Plans with another window
// are refused: each window of a subject has a key of its own, and Reset must know them all.
func New(store limiter.Store, windows ...time.Duration) (*Limiter, error) {
	if nilvalue.In(store) {
		return nil, errors.New("ululelimit: New needs a store, got nil")
	}
	if windows == nil {
		windows = []time.Duration{time.Second, time.Minute, time.Hour, 24 * time.Hour}
	}
	l := &Limiter{store: store}
	for _, w := range windows {
		if w < time.Second || w > fixedwindow.MaxLength || w%time.Second != 0 {
			return nil, fmt.Errorf("ululelimit: windows must be whole seconds from 1s to %dh, got %v", fixedwindow.MaxLength/time.Hour, w)
		}
		l.keyspaces = append(l.keyspaces, newKeyspace("", w))
	}
	return l, nil
}

// Take implements [ratelimit.Limiter], except that it charges denied requests. Errors
// of the store wrap [ratelimit.ErrUnavailable].
func (l *Limiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
		return d, err
	}
	k, err := l.keyspace(plan)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	state, err := l.store.Increment(ctx, k.key(subject), cost, rate(engine.Of(plan)))
	if err != nil {
		return ratelimit.Decision{}, unavailable("take", err)
	}
	return decision(plan, cost, state, !state.Reached), nil
}

// Peek implements [engine.Peeker]. Call it for each plan when the service starts: the error wraps
// [ratelimit.ErrInvalid] if requests cannot be decided under the plan.
func (l *Limiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	if d, err := engine.Decide(subject, plan, 1); err != nil || d.Outcome != 0 {
		return d, err
	}
	k, err := l.keyspace(plan)
	if err != nil {
		return ratelimit.Decision{}, err
	}
	state, err := l.store.Peek(ctx, k.key(subject), rate(engine.Of(plan)))
	if err != nil {
		return ratelimit.Decision{}, unavailable("peek", err)
	}
	return decision(plan, 1, state, state.Remaining > 0), nil
}

// Reset forgets the usage of subject in the windows that [New] was given, with a
// call of the store for each. If it fails, some windows may be reset and others not.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	if subject == "" {
		return fmt.Errorf("ululelimit: reset: %w: no subject", ratelimit.ErrInvalid)
	}
	for i := range l.keyspaces {
		k := &l.keyspaces[i]
		if _, err := l.store.Reset(ctx, k.key(subject), limiter.Rate{Limit: 1, Period: k.window}); err != nil {
			return unavailable("reset", err)
		}
	}
	return nil
}

func unavailable(doing string, err error) error {
	return fmt.Errorf("ululelimit: %s: %w: %w", doing, ratelimit.ErrUnavailable, err)
}

func (l *Limiter) keyspace(plan *ratelimit.Plan) (*keyspace, error) {
	p := engine.Of(plan)
	q := p.Quota(0)
	switch {
	case p.Len() > 1:
		return nil, fmt.Errorf("%w: ululelimit needs a plan with 1 quota, got %d in %v", ratelimit.ErrInvalid, p.Len(), plan)
	case q.Burst() > 0:
		return nil, fmt.Errorf("%w: ululelimit cannot count smooth quotas, got %v", ratelimit.ErrInvalid, q)
	case fixedwindow.IsCalendar(q.Window):
		return nil, fmt.Errorf("%w: ululelimit cannot count in calendar windows, got %v", ratelimit.ErrInvalid, q)
	}
	for i := range l.keyspaces {
		if l.keyspaces[i].window == q.Window {
			return &l.keyspaces[i], nil
		}
	}
	return nil, fmt.Errorf("%w: ululelimit needs one of the windows that New was given, got %v", ratelimit.ErrInvalid, q)
}

func rate(p engine.Plan) limiter.Rate {
	return limiter.Rate{Limit: p.Limit(0), Period: p.Kind(0)}
}

// decision works out a decision from the answer of a store.
func decision(plan *ratelimit.Plan, cost int64, state limiter.Context, allowed bool) ratelimit.Decision {
	d := ratelimit.Decision{
		Outcome:     ratelimit.Allowed,
		Plan:        plan,
		Cost:        cost,
		Time:        time.Now().UnixNano(),
		StrikesLeft: -1,
	}
	most := engine.Of(plan).Limit(0)
	if !allowed {
		d.Outcome = ratelimit.Limited
		most = cost - 1
	}
	d.States[0] = ratelimit.State{
		Remaining: min(max(state.Remaining, 0), most),
		// The store rounds down to a second.
		Reset: state.Reset + 1,
	}
	engine.Complete(&d)
	if !allowed {
		// A store in Redis counts in milliseconds, and may be wrong by one.
		d.RetryAfter += time.Millisecond
	}
	return d
}

// TakeAll implements [engine.MultiTaker] with one call for each charge, in order, within
// the bounds that [engine.TakeInOrder] states.
func (l *Limiter) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return engine.TakeInOrder(ctx, l, charges, decisions)
}

// A keyspace names the keys of one window: "60:owner:17". Whatever bytes subjects have,
// the keys of two windows differ.
type keyspace struct {
	window time.Duration
	head   string
}

func newKeyspace(prefix string, window time.Duration) keyspace {
	return keyspace{window, prefix + strconv.FormatInt(int64(window/time.Second), 10) + ":"}
}

func (k *keyspace) key(subject string) string { return k.head + subject }
