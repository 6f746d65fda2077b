package failover

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A Limiter stands in front of a shared engine, the primary, and decides in a
// stated way when it does not answer. It is made by [New]. It may be used by
// any number of goroutines. It has a goroutine of its own only while the circuit
// is open or something is to be merged; [Limiter.Close] ends it.
type Limiter struct {
	primary      ratelimit.Limiter
	mode         Mode
	opts         Options
	capable      capabilities // the primary's
	localCapable capabilities // the local engine's
	errBudget    error
	patience     time.Duration // of calls that no request waits for
	places       chan struct{}
	calls        sync.Pool
	breaker      breaker
	journal      journal
	merger       merger
	shadow       shadow

	mu         sync.Mutex // guards closed, and a change of keeping to true
	closed     bool
	keeping    atomic.Bool
	keepers    sync.WaitGroup
	roused     chan struct{}
	commanding chan struct{}   // full while there is a Reset, Ban or Unban
	ctx        context.Context // of the keeper
	stop       context.CancelFunc

	counters
}

var _ interface {
	ratelimit.Limiter
	ratelimit.Peeker
	ratelimit.Resetter
	ratelimit.Refunder
	ratelimit.Banner
} = (*Limiter)(nil)

// New returns a Limiter whose circuit is closed. It does not call the primary.
func New(primary ratelimit.Limiter, mode Mode, opts Options) (*Limiter, error) {
	if primary == nil {
		return nil, errors.New("failover: New: no primary")
	}
	if !mode.valid() {
		return nil, errors.New("failover: New: no mode: say what to do without the primary, Local, Open or Closed")
	}
	opts.setDefaults()
	if err := opts.validate(mode); err != nil {
		return nil, err
	}
	l := &Limiter{
		primary: primary,
		mode:    mode,
		opts:    opts,
		errBudget: fmt.Errorf("failover: %w: no answer in time: %w",
			ratelimit.ErrUnavailable, context.DeadlineExceeded),
		patience:   max(time.Second, opts.Budget),
		places:     make(chan struct{}, opts.Calls),
		roused:     make(chan struct{}, 1),
		commanding: make(chan struct{}, 1),
	}
	l.capable = capabilitiesOf(primary)
	if mode == FailLocal {
		l.localCapable = capabilitiesOf(opts.Local)
	}
	l.breaker.init(circuit{row: opts.Row, share: opts.Share, first: opts.FirstProbe, last: opts.LastProbe})
	l.journal.init(opts.Journal)
	l.merger.primary, l.merger.capable, l.merger.journal = primary, l.capable, &l.journal
	if mode == FailLocal && l.localCapable.peeker != nil {
		l.shadow.init(opts.Shadow, opts.Budget)
	}
	l.ctx, l.stop = context.WithCancel(context.Background())
	return l, nil
}

// Take implements [ratelimit.Limiter]. It returns within the budget. If the
// primary does not decide, the mode does; an error is then the local engine's,
// or that of mode [FailClosed]. If ctx ends first its error is returned, and the
// request may have been charged.
func (l *Limiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if err := plan.Check(subject, cost); err != nil {
		return ratelimit.Decision{}, err
	}
	d, late, decided, err := l.consult(ctx, askTake, subject, plan, cost)
	if decided {
		return d, err
	}
	v := verdict{stands: true}
	if late != nil {
		defer func() { late.verdict <- v }()
	}
	d, v, err = l.takeInstead(ctx, subject, plan, cost, err)
	return d, err
}

// consult asks the primary. If it did not decide, err is why, or nil while the
// circuit is open, and late, if not nil, is the call to which the answer may yet
// come: it waits for a verdict.
func (l *Limiter) consult(ctx context.Context, ask func(*call, context.Context) error, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, late *call, decided bool, err error) {
	v := l.breaker.look()
	if !v.admits() {
		return d, nil, false, nil
	}
	if err := ctx.Err(); err != nil {
		return d, nil, true, fmt.Errorf("failover: %w", err)
	}
	c, commands := l.newCall(), l.shadow.commands.Load()
	c.ask, c.subject, c.plan, c.cost, c.commands = ask, subject, plan, cost, commands
	left, err := l.wait(ctx, c, l.opts.Budget)
	switch {
	case left:
		late = c
	case err != nil:
		l.release(c)
	default:
		d, err = c.d, c.err
		l.release(c)
		if err == nil {
			l.breaker.succeeded(v)
			l.shadow.note(subject, &d, commands)
			return d, nil, true, nil
		}
	}
	switch {
	case err == l.errBudget:
		l.timeouts.Add(1)
	case ctx.Err() != nil, errors.Is(err, ratelimit.ErrInvalid):
		// Says nothing about the primary: the caller left, or made an invalid call.
		if late != nil {
			late.verdict <- verdict{stands: true}
		}
		return ratelimit.Decision{}, nil, true, fmt.Errorf("failover: %w", err)
	}
	if errors.Is(err, errUnmerged) {
		return d, nil, false, err // and says nothing about the primary as a whole
	}
	l.failures.Add(1)
	if l.breaker.failed(v, plan, err) {
		l.rouse()
	}
	return ratelimit.Decision{}, late, false, err
}
