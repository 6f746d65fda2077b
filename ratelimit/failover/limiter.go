package failover

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A Limiter asks a shared engine, the primary, for each decision. If the primary does
// not decide, the mode does. It is made by [New], and may be used by any number
// of goroutines. It has a goroutine of its own only while the circuit is open or the
// journal is not empty; [Limiter.Close] ends it.
type Limiter struct {
	primary ratelimit.Limiter
	mode    Mode
	opts    Options

	breaker   breaker
	journal   journal
	merger    merger
	mirror    mirror
	keeper    keeper
	fallbacks atomic.Uint64
}

// New returns a Limiter whose circuit is closed. It does not call the primary.
func New(primary ratelimit.Limiter, mode Mode, opts Options) (*Limiter, error) {
	if nilvalue.In(primary) {
		return nil, errors.New("failover: the primary must be an engine, got nil")
	}
	if !mode.valid() {
		return nil, fmt.Errorf("failover: the mode must be FailLocal, FailOpen or FailClosed, got %v", mode)
	}
	if err := opts.complete(); err != nil {
		return nil, err
	}
	if opts.OnChange == nil {
		opts.OnChange = logged(mode)
	}
	l := &Limiter{primary: primary, mode: mode, opts: opts}
	if mode == FailLocal {
		adjuster, local, err := opts.engines(primary)
		if err != nil {
			return nil, err
		}
		l.merger.primary, l.mirror.local = adjuster, local
		l.mirror.banner, _ = local.(ratelimit.Banner)
	}
	l.breaker.init(&l.opts)
	l.journal.init(opts.JournalSize)
	l.merger.journal = &l.journal
	l.keeper.init(l)
	return l, nil
}

// Take implements [ratelimit.Limiter]. If the primary does not decide within the
// budget, the mode does: an error is then the local engine's, or that of mode
// [FailClosed]. If ctx ends first, Take returns its error, and the request may have
// been charged.
func (l *Limiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if d, err := plan.Decide(subject, cost); err != nil || d.Outcome != 0 {
		return d, err
	}
	return l.decide(ctx, subject, plan, cost, func(ctx context.Context) (ratelimit.Decision, error) {
		return l.primary.Take(ctx, subject, plan, cost)
	}, func() (ratelimit.Decision, error) {
		d, err := l.mirror.local.Take(ctx, subject, plan, cost)
		if err == nil && d.Allowed() {
			l.journal.admit(subject, &d)
			l.keeper.start()
		}
		return d, err
	})
}

// Peek implements [ratelimit.Peeker], with the budget and the mode of Take.
func (l *Limiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	primary, local, err := both[ratelimit.Peeker](l, "peek")
	if err != nil {
		return ratelimit.Decision{}, err
	}
	if d, err := plan.Decide(subject, 1); err != nil || d.Outcome != 0 {
		return d, err
	}
	return l.decide(ctx, subject, plan, 1, func(ctx context.Context) (ratelimit.Decision, error) {
		return primary.Peek(ctx, subject, plan)
	}, func() (ratelimit.Decision, error) {
		return local.Peek(ctx, subject, plan)
	})
}

// decide has the primary decide, once it knows all usage of the subject. If it does
// not answer, the mode decides. TakeAll does the same.
func (l *Limiter) decide(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64,
	there func(context.Context) (ratelimit.Decision, error), here func() (ratelimit.Decision, error)) (d ratelimit.Decision, err error) {
	if v := l.breaker.look(); v.closed() {
		generation := l.mirror.generation.Load()
		var failed bool
		failed, err = within(ctx, l.opts.Budget, func(ctx context.Context) (err error) {
			if err = l.merger.bring(ctx, subject); err == nil {
				d, err = there(ctx)
			}
			return err
		})
		switch {
		case err == nil:
			l.breaker.succeeded(v)
			l.mirror.update(ctx, subject, &d, generation)
			return d, nil
		case !failed:
			return ratelimit.Decision{}, err
		case errors.Is(err, errBacksOff): // the primary may answer others
		case l.breaker.failed(v, plan, err):
			l.keeper.rouse()
		}
	}
	l.fallbacks.Add(1)
	switch l.mode {
	case FailLocal:
		return here()
	case FailOpen:
		return plan.Uncounted(cost, time.Now()), nil
	}
	return ratelimit.Decision{}, l.refusal(err)
}

var errTimeout = errors.New("no answer in time")

// within calls the primary, for at most the given time. It reports whether an error
// is a failure of the primary: not the caller's, nor that of an invalid call.
func within(ctx context.Context, limit time.Duration, call func(context.Context) error) (failed bool, err error) {
	if err := ctx.Err(); err != nil {
		return false, fmt.Errorf("failover: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err = call(limited)
	switch {
	case err == nil:
		return false, nil
	case ctx.Err() != nil:
		return false, fmt.Errorf("failover: %w", ctx.Err())
	case errors.Is(err, ratelimit.ErrInvalid):
		return false, fmt.Errorf("failover: %w", err)
	case limited.Err() != nil:
		return true, fmt.Errorf("%w (%v): %w", errTimeout, limit, err)
	}
	return true, err
}

// refusal is the error of a call that no engine answers. A nil cause means that the
// circuit is open.
func (l *Limiter) refusal(cause error) error {
	switch {
	case cause == nil:
		return *l.breaker.refusal.Load()
	case errors.Is(cause, ratelimit.ErrUnavailable):
		return fmt.Errorf("failover: %w", cause)
	}
	return fmt.Errorf("failover: %w: %w", ratelimit.ErrUnavailable, cause)
}

// Close ends the goroutine that probes and merges, if it runs. If the circuit is
// closed it then merges what is left. It takes at most two seconds, or two budgets if
// they are longer, and waits for a call of OnChange that has begun. An error says how
// many subjects are not merged.
//
// Requests can still be decided, but a circuit that is open or opens then stays open,
// and OnChange is called no more.
func (l *Limiter) Close() error {
	l.keeper.close()
	switch n := l.journal.held.Load(); n {
	case 0:
		return nil
	case 1:
		return errors.New("failover: Close: usage of 1 subject is not merged")
	default:
		return fmt.Errorf("failover: Close: usage of %d subjects is not merged", n)
	}
}
