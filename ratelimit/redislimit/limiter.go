package redislimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Options of a [Limiter]. The zero value works.
type Options struct {
	// Prefix begins the name of every key, so that several sets of subjects can
	// share one Redis. It holds no brace, and at most 64 bytes; "" means
	// "gatehouse". All processes that limit together use the same one.
	Prefix string

	// MaxInFlight is how many batches are under way to one master at once, 1 to 64;
	// 0 means 8. See the package documentation under Throughput.
	MaxInFlight int

	// Logger gets one warning for each server that evicts keys when its memory is
	// full, since that grants quotas twice. Nil means [slog.Default].
	Logger *slog.Logger
}

func (o Options) validate() error {
	switch {
	case strings.ContainsAny(o.Prefix, "{}"):
		return fmt.Errorf("redislimit: Options.Prefix: %q holds a brace, which would change the hash tags", o.Prefix)
	case len(o.Prefix) > 64:
		return fmt.Errorf("redislimit: Options.Prefix: %d bytes, at most 64 are supported", len(o.Prefix))
	case o.MaxInFlight < 0 || o.MaxInFlight > 64:
		return fmt.Errorf("redislimit: Options.MaxInFlight: %d is not from 0 to 64", o.MaxInFlight)
	}
	return nil
}

// A Limiter decides in Redis, for every process that uses the same Redis and
// prefix. It is made by [New], and may be used by any number of goroutines. It
// has no goroutine while no call is under way, and needs no closing; the client
// stays the caller's.
//
// Every method returns when its context ends, with the context's error, even if
// Redis does not answer. What was asked for may then happen all the same. Every
// other error of a call that was valid wraps [ratelimit.ErrUnavailable].
type Limiter struct {
	client redis.UniversalClient
	keys   *keys
	lanes  lanes
	// alone is set if one call of the script takes the subjects of one slot only.
	alone atomic.Bool
	calls sync.Pool // of *call

	logger    *slog.Logger
	contacted atomic.Bool // a server has answered
}

var _ interface {
	ratelimit.Limiter
	ratelimit.Peeker
	ratelimit.Resetter
	ratelimit.Refunder
	ratelimit.OnceUsageAdder
	ratelimit.Banner
} = (*Limiter)(nil)

// New returns an engine that uses client: a Client, of one server or through
// sentinels, a ClusterClient or a Ring. It does not connect.
func New(client redis.UniversalClient, opts Options) (*Limiter, error) {
	if client == nil {
		return nil, errors.New("redislimit: no client")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.Prefix == "" {
		opts.Prefix = "gatehouse"
	}
	if opts.MaxInFlight == 0 {
		opts.MaxInFlight = 8
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	l := &Limiter{client: client, keys: newKeys(opts.Prefix), logger: opts.Logger}
	_, oneServer := client.(*redis.Client)
	l.alone.Store(!oneServer)
	l.calls.New = func() any { return &call{ready: make(chan struct{}, 1)} }
	l.lanes.init(client, l.keys, opts.MaxInFlight, l.send)
	return l, nil
}

// Take implements [ratelimit.Limiter].
func (l *Limiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if err := plan.Check(subject, cost); err != nil {
		return d, err
	}
	r, err := l.ask(ctx, question{op: opTake, subject: subject, plan: plan, cost: cost})
	if err != nil {
		return d, err
	}
	return r.decision(plan, cost)
}

// Peek implements [ratelimit.Peeker].
func (l *Limiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (d ratelimit.Decision, err error) {
	if err := plan.Check(subject, 1); err != nil {
		return d, err
	}
	r, err := l.ask(ctx, question{op: opPeek, subject: subject, plan: plan, cost: 1})
	if err != nil {
		return d, err
	}
	return r.view(plan)
}

// Refund implements [ratelimit.Refunder].
func (l *Limiter) Refund(ctx context.Context, subject string, d *ratelimit.Decision) error {
	if d == nil {
		return fmt.Errorf("%w: no decision", ratelimit.ErrInvalid)
	}
	if d.Outcome != ratelimit.Allowed {
		return nil
	}
	if err := d.Plan.Check(subject, d.Cost); err != nil {
		return err
	}
	_, err := l.ask(ctx, refundOf(subject, d))
	return err
}

// Reset implements [ratelimit.Resetter].
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	_, err := l.ask(ctx, question{op: opReset, subject: subject})
	return err
}

// ask puts a question to the script, together with those of other callers.
func (l *Limiter) ask(ctx context.Context, q question) (reply, error) {
	if q.subject == "" {
		return reply{}, fmt.Errorf("%w: no subject", ratelimit.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return reply{}, err
	}
	c := l.calls.Get().(*call)
	g, err := l.lanes.of(partition(q.subject)).ask(ctx, q, c)
	if err != nil {
		return reply{}, err // the call is still in the group
	}
	r := reply{time: g.time, entry: g.entry, requests: g.requests, place: c.place}
	*c = call{ready: c.ready}
	l.calls.Put(c)
	return r, g.err
}
