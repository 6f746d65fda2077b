package failover

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A Limiter asks a shared engine, the primary, for each decision. If the primary does not decide,
// [Options.Local] does. It is made by [New], and may be used by any number of goroutines. From the
// first failure of the primary on it has a goroutine of its own, which [Limiter.Close] ends.
type Limiter struct {
	primary ratelimit.Limiter
	local   localEngine // nil: there is none
	opts    Options

	breaker   breaker
	journal   journal
	mirroring sync.Mutex // one for all subjects: the primary decides less often than local answers
	keeper    keeper
	holds     sync.Map // of requests in progress: whether the local engine made the charge, by hold
	fallbacks atomic.Uint64
	warned    atomic.Bool // a loss of this outage was logged
}

// New returns a Limiter whose circuit is closed. It does not call the primary.
func New(primary ratelimit.Limiter, opts Options) (*Limiter, error) {
	if nilvalue.InEngine(primary) {
		return nil, errors.New("failover: the primary must be an engine, got nil or the zero memory.Limiter")
	}
	if err := opts.complete(); err != nil {
		return nil, err
	}
	if opts.OnChange == nil {
		opts.OnChange = logged()
	}
	adjuster, local, err := opts.engines(primary)
	if err != nil {
		return nil, err
	}
	l := &Limiter{
		primary: primary, opts: opts, local: local,
		journal: journal{primary: adjuster, bound: opts.JournalSize, entries: map[string]*entry{}},
	}
	l.breaker.init(&l.opts)
	l.keeper.init(l)
	return l, nil
}

// Take implements [ratelimit.Limiter]. If the primary does not decide within the budget,
// [Options.Local] does. Without it, and if it fails too, the error wraps [ratelimit.ErrUnavailable].
// If ctx ends first, Take returns its error, and the request may have been charged.
func (l *Limiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return taker{l: l, plain: true}.Take(ctx, subject, plan, cost)
}

// Peek implements [engine.Peeker], with the budget and the fallback of Take.
func (l *Limiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	if _, _, err := both[engine.Peeker](l, "peek"); err != nil {
		return ratelimit.Decision{}, err
	}
	if d, err := engine.Decide(subject, plan, 1); err != nil || d.Outcome != 0 {
		return d, err
	}
	var d [1]ratelimit.Decision
	charges := []ratelimit.Charge{{Subject: subject, Plan: plan}}
	err := taker{l: l, plain: true}.decide(ctx, charges, d[:], func(ctx context.Context, decides ratelimit.Limiter) (err error) {
		d[0], err = decides.(engine.Peeker).Peek(ctx, subject, plan)
		return err
	})
	return d[0], err
}

// TakeAll implements [engine.MultiTaker], with the budget and the fallback of Take.
// All charges are decided by the primary, or all by [Options.Local].
func (l *Limiter) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return taker{l: l, plain: true}.TakeAll(ctx, charges, decisions)
}

// A decider has an engine make some decisions.
type decider func(context.Context, ratelimit.Limiter) error

// A reply says what came of a call of the primary.
type reply uint8

const (
	unsent   reply = iota // the circuit is open: the primary was not called
	answered              // it did what was asked
	failed                // it did not answer in time, or with an error of its own
	rejected              // the error is the caller's: the call is invalid, or its context has ended
)

// ask asks the primary, unless the circuit is open, once it knows all usage of the subjects,
// and mirrors its answer.
func (l *Limiter) ask(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision, do decider) (reply, error) {
	c := l.breaker.current()
	if c.open {
		return unsent, nil
	}
	got, err := within(ctx, l.opts.Budget, func(ctx context.Context) error {
		for i := range charges {
			if err := l.journal.bring(ctx, charges[i].Subject); err != nil {
				return err
			}
		}
		return do(ctx, l.primary)
	})
	switch got {
	case answered:
		l.breaker.succeeded(c.epoch)
		for i := range charges {
			l.mirror(ctx, charges[i].Subject, &decisions[i])
		}
	case failed:
		// After errUnmerged the primary was not called for this.
		if !errors.Is(err, errUnmerged) && l.breaker.failed(c.epoch, charges[0].Plan, err) {
			l.keeper.rouse()
		}
	}
	return got, err
}

// admit enters a charge that only the local engine has made into the journal, if there is room.
func (l *Limiter) admit(subject string, c call) {
	if c.d.Cost = 0; l.journal.enter(subject, c) != nil {
		if l.journal.lost.Add(1); !l.warned.Swap(true) {
			slog.Warn("failover: the journal is full; the primary will not count all requests that are admitted without it; raise Options.JournalSize", "JournalSize", l.opts.JournalSize)
		}
	}
	l.keeper.start()
}

var errTimeout = errors.New("no answer in time")

// within calls the primary, for at most the given time.
func within(ctx context.Context, limit time.Duration, call func(context.Context) error) (reply, error) {
	if err := ctx.Err(); err != nil {
		return rejected, fmt.Errorf("failover: %w", err)
	}
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := call(limited)
	switch {
	case err == nil:
		return answered, nil
	case ctx.Err() != nil:
		return rejected, fmt.Errorf("failover: %w", ctx.Err())
	case errors.Is(err, ratelimit.ErrInvalid):
		return rejected, fmt.Errorf("failover: %w", err)
	case limited.Err() != nil:
		return failed, fmt.Errorf("%w (%v): %w", errTimeout, limit, err)
	}
	return failed, err
}

// refusal is the error of a call that no engine answers. A nil cause means that the
// circuit is open.
func (l *Limiter) refusal(cause error) error {
	switch {
	case cause == nil:
		return l.breaker.current().refusal
	case errors.Is(cause, ratelimit.ErrUnavailable):
		return fmt.Errorf("failover: %w", cause)
	}
	return fmt.Errorf("failover: %w: %w", ratelimit.ErrUnavailable, cause)
}

// Stats count what the primary and the local engine did. All but Pending only grow.
type Stats struct {
	Fallbacks uint64 // decisions that the primary did not make
	Failures  uint64 // calls of the primary for a decision that failed
	Timeouts  uint64 // failures without an answer within the budget
	Opened    uint64 // times the circuit opened; failed probes are not counted
	Lost      uint64 // charges, or sums of them, that the primary will not count: the journal had no room, see Options.JournalSize, or they are invalid there
	Pending   int64  // subjects in the journal
}

// Stats returns the present numbers.
func (l *Limiter) Stats() Stats {
	b, j := &l.breaker, &l.journal
	return Stats{
		Fallbacks: l.fallbacks.Load(), Failures: b.failures.Load(), Timeouts: b.timeouts.Load(),
		Opened: b.opened.Load(), Lost: j.lost.Load(), Pending: j.size.Load(),
	}
}

// Open reports whether the circuit is open: the primary is not called, and
// [Options.Local] decides, if there is one. The readiness of a service may depend on it.
func (l *Limiter) Open() bool { return l.breaker.current().open }
