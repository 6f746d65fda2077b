package redislimit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/nilvalue"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A Limiter decides in Redis, for all processes that use the same Redis and prefix. It
// is made by [New], and is safe for concurrent use. It has no goroutine when idle, and
// needs no Close; it does not close the client.
//
// Every method returns the context's error as soon as its context ends, even if Redis
// does not answer. Every other error of a valid call wraps
// [ratelimit.ErrUnavailable].
//
// # Errors of Take
//
// After an error there is no decision, and the caller must not treat the request as admitted.
// If the reply was lost, the request may have been charged, but at most once. The engine does
// not repeat a call with an unknown outcome, whatever MaxRetries is in the options of the
// client. If the context ends before the call is sent, nothing is charged. If a deadline passes
// after that, the engine refunds the charge when the answer comes; if the context is cancelled,
// the charge stays. In both cases a held charge is given back after its timeout, as it is after
// a lost reply. If such a request was a strike or started a ban, the strike or the ban stays, and
// no decision says so.
//
// A key that holds a value that the engine did not write is an error for every
// operation on its subject. The error names the key, and the key stays as it is.
//
// While a master of a cluster does not answer, cannot be reached, or says that it is down or
// loading, one batch of calls at a time is sent to it. Calls for its subjects that come
// meanwhile fail immediately, and are not charged.
//
// An error about one key does not count for the circuit of package failover. Nor does any error
// of a master, such as NOREPLICAS or OOM, while another master has answered since it began.
//
// # Retries
//
// The engine sends a call again if the server says that nothing was done. It sends the text of
// the script to a server that does not know it (after SCRIPT FLUSH, a restart or a failover),
// and sends slot by slot to a server in cluster mode. While a cluster moves a slot, a request
// that would start a ban is limited instead, and the first one after the move starts it. Ban,
// Unban, Reset, Lease, held charges, and Adjust with an id or to give back to a smooth quota need
// a second key. The engine repeats them until the slot has moved, for five seconds at most.
type Limiter struct {
	masters *masters
	sender  *sender
	calls   sync.Pool // of *call

	holds    sync.Map    // of this process, *hold by holdKey
	renewing atomic.Bool // renewAll will run
}

var _ interface {
	ratelimit.Limiter
	engine.MultiTaker
	engine.Peeker
	Reset(ctx context.Context, subject string) error
	engine.Adjuster
	engine.Leaser
	engine.Holder
	engine.Banner
} = (*Limiter)(nil)

// New returns an engine that uses client: a Client, of one server or through
// sentinels, or a ClusterClient. It does not connect. It refuses a Ring, which moves the
// subjects of a server that is down to another one, where their quotas begin anew.
//
// # Client
//
// The timeouts of the client bound how long a call without a deadline waits. Set them to
// what a request can wait, and the numbers of attempts so that the client does not pause
// and connect again:
//
//	client := redis.NewClient(&redis.Options{
//		Addr:          "localhost:6379",
//		DialTimeout:   300 * time.Millisecond,
//		ReadTimeout:   300 * time.Millisecond,
//		DialerRetries: 1,
//		MaxRetries:    -1,
//	})
//
// A call may first wait for a batch in flight, so it can take two timeouts or more.
// Package ratelimit/failover adds a timeout of its own, a circuit breaker and another
// engine that takes over.
//
// When as many attempts to connect have failed as its pool has connections, the
// client tries once a second, and answers every call with the last error meanwhile.
// So it may notice a second late that a server is back. It logs each failed attempt to
// standard error, unless redis.SetLogger has given it another logger.
//
// # Server
//
// A server without free memory must refuse to write (maxmemory-policy noeviction): if
// it evicts a key, a quota is granted twice or a ban is forgotten. Once a minute the engine asks
// each server for its policy, and logs a warning if the server has begun to evict keys.
// With the default prefix, the engine works as a Redis user with this rule (ACL):
//
//	ACL SETUSER gatehouse on >PASSWORD resetchannels ~gatehouse{*
//		+evalsha +eval +time +mget +set +del +exists
//		+zadd +zrem +zremrangebyscore +zrevrange +zscan +expireat
//		+cluster|slots +asking
//
// Only the client of a cluster needs CLUSTER SLOTS and ASKING. Add +select for a client with
// another DB than 0, and +info for the warning about eviction.
func New(client redis.UniversalClient, opts Options) (*Limiter, error) {
	if nilvalue.In(client) {
		return nil, errors.New("redislimit: New needs a client, got nil")
	}
	if _, ok := client.(*redis.Ring); ok {
		return nil, errors.New("redislimit: New needs a Client or a ClusterClient, got a Ring: when one of its servers is down, quotas begin anew on another one; use a cluster")
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	if opts.Logger == nil {
		opts.Logger = slog.Default()
	}
	s := newSender(client, newKeys(cmp.Or(opts.Prefix, "gatehouse")), opts)
	l := &Limiter{masters: &masters{sender: s, first: s.newBatcher()}, sender: s}
	l.calls.New = func() any { return newCall() }
	return l, nil
}

// Take implements [ratelimit.Limiter]. A decision that takes the server 2 µs takes 15 once 2^32
// units or more of a window are used.
func (l *Limiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return l.take(ctx, nil, subject, plan, cost)
}

// take is Take, of a holder unless h is nil.
func (l *Limiter) take(ctx context.Context, h *holder, subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	if d, err := engine.Decide(subject, plan, cost); err != nil || d.Outcome != 0 {
		return d, err
	}
	g, place, err := l.do(ctx, operation{code: opTake, subject: subject, plan: plan, cost: cost, holder: h})
	if err != nil {
		return d, err
	}
	if d, err = g.decision(plan, cost, place); h != nil && d.Allowed() {
		h.keep(subject, cost, g.bytes)
	}
	return d, err
}

// Peek implements [engine.Peeker].
func (l *Limiter) Peek(ctx context.Context, subject string, plan *ratelimit.Plan) (d ratelimit.Decision, err error) {
	if d, err := engine.Decide(subject, plan, 1); err != nil || d.Outcome != 0 {
		return d, err
	}
	g, _, err := l.do(ctx, operation{code: opPeek, subject: subject, plan: plan, cost: 1})
	if err != nil {
		return d, err
	}
	return g.view(plan, 1)
}

// adjustAttempts is how often an adjustment is sent at most.
const adjustAttempts = 4

// Adjust implements [engine.Adjuster]. With an id it sends the call again if the answer
// is lost, until ctx ends. Redis remembers the id for ten minutes, in a key of about 190 bytes:
// 100 adjustments a second take 11 MB. If it settles a hold, Redis remembers no id: repeat the call
// only after an error.
func (l *Limiter) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	added, err := engine.Adjustment(subject, d, units)
	if err != nil || !d.Allowed() {
		return err
	}
	h := l.held(id, subject)
	if added == 0 && h == nil {
		return nil
	}
	op := adjustment(subject, d, added, id)
	if h != nil {
		h.settled.CompareAndSwap(0, time.Now().UnixNano())
		op.change.hold, op.change.total = h, units
	}
	for range adjustAttempts {
		if _, _, err = l.do(ctx, op); err == nil || id == "" {
			break
		}
	}
	if err == nil && h != nil {
		h.forget()
	}
	return err
}

// Reset forgets subject: its usage, strikes and ban.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	_, _, err := l.do(ctx, operation{code: opReset, subject: subject})
	return err
}

// do has the script do an operation, together with operations of other callers. It returns
// the group with the answer, and the caller's place among the requests that it is about.
func (l *Limiter) do(ctx context.Context, op operation) (g *group, place int32, err error) {
	if op.subject == "" {
		return nil, 0, fmt.Errorf("%w: no subject", ratelimit.ErrInvalid)
	}
	if err := ctx.Err(); err != nil {
		return nil, 0, err
	}
	c, master := l.calls.Get().(*call), l.masters.of(partition(op.subject))
	g, err = master.do(ctx, op, c)
	if err != nil { // the group still has the call
		return nil, 0, l.masters.judge(master, false, err)
	}
	place, err = c.place, g.err
	*c = call{ready: c.ready}
	l.calls.Put(c)
	return g, place, l.masters.judge(master, op.code != opPeek && place < g.granted, err)
}
