package inflight

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/apierror"
)

// A Caller is the client that a request counts for.
type Caller struct {
	// Subject is the name that requests are counted for; it must not be empty. Each kind of
	// caller needs a prefix of its own, such as "owner:" (apikey.OwnerSubject) and "network:"
	// (clientip.NetworkSubject). So a name which a caller chose is never the name of another.
	Subject string

	// Limit is how many requests of the subject may run at once, for callers that differ
	// in it, such as by plan. 0 means the limit given to New. The Limit of the latest
	// request holds for all of its subject.
	Limit int
}

// Options are optional settings of a Limiter. The zero value works.
type Options struct {
	// Queue is how many requests of a subject (of the process, with [NewProcess]) may
	// wait for another one to finish. They are served in the order in which they came,
	// and before all that come later. A request that finds the queue full is refused
	// immediately. 0 means that no request waits. A queue needs Wait.
	Queue int

	// Wait is how long a request waits in the queue at most before it is refused. A
	// request whose context ends earlier is refused then. Keep it short, such as
	// 100 ms: a waiting request keeps its connection and its goroutine, and its client
	// waits longer.
	Wait time.Duration

	// Observe is called with each decision before the request is served or refused, but
	// not if identify returned an error. c is what identify
	// returned, the zero Caller with [NewProcess]. Observe runs in the goroutine of the
	// request, and must be safe for concurrent use.
	Observe func(r *http.Request, c Caller, d Decision)

	// Errors writes all responses to refused requests. Nil works.
	Errors *apierror.Responder

	// Shared counts a request in all processes that share the limit: Enter of a Pool of package
	// ratelimit/redislimit/slots. It is called for each request that this process's limit
	// admits, with the request's context, its subject and its limit. It runs on the goroutine
	// of the request, and must be safe for concurrent use. If leave is nil, the request is
	// refused. Otherwise leave is called when the request has ended. An error means that Shared
	// could not decide: then the request is admitted.
	//
	// Queue, Running and Subjects are about this process alone. Nil means that each process
	// counts for itself.
	Shared func(ctx context.Context, subject string, limit int) (leave func(), err error)
}

func (o *Options) validate() error {
	switch {
	case o.Queue < 0:
		return fmt.Errorf("inflight: Options.Queue must be 0 or more requests, got %d", o.Queue)
	case o.Wait < 0:
		return fmt.Errorf("inflight: Options.Wait must be 0s or more, got %v", o.Wait)
	case o.Queue > 0 && o.Wait == 0:
		return fmt.Errorf("inflight: Options.Queue is %d, so Options.Wait must be above 0s", o.Queue)
	case o.Queue == 0 && o.Wait > 0:
		return fmt.Errorf("inflight: Options.Wait is %v, so Options.Queue must be 1 or more", o.Wait)
	}
	return nil
}

// A Decision says what became of a request.
type Decision struct {
	Admitted bool          // whether the limit allows it
	Limit    int           // the limit that applied
	Running  int           // requests of the subject that run, with this one if it runs too
	Waited   time.Duration // time in the queue; 0 if it did not wait
}

// Stats are the numbers of a Limiter, for metrics.
type Stats struct {
	Running  int    // requests that run
	Waiting  int    // requests in queues
	Subjects int    // subjects with a request that runs; at most 1 with NewProcess
	Admitted uint64 // requests within the limit, since the Limiter was made
	Refused  uint64 // requests beyond the limit, since the Limiter was made
	Unshared uint64 // requests in Admitted for which Options.Shared returned an error
}

// A Limiter limits how many requests run at once. [New] and [NewProcess] make it. It is
// safe for concurrent use, and must not be copied.
type Limiter struct {
	opts     Options
	limit    int
	identify func(*http.Request) (Caller, error) // nil: all requests count together
	refused  *apierror.Error                     // of the limit, encoded for floods of refused requests

	seed   maphash.Seed
	shards [shardCount]shard
	shared struct{ admitted, refused, unshared atomic.Uint64 } // by Options.Shared
}

// shardCount is how many locks there are, as each request takes one twice.
const shardCount = 32

// New returns a Limiter that allows limit requests of each subject at once, and refuses
// further ones with 429. identify returns the Caller of a request. If it returns an
// error, the request is answered with it: an [apierror.Error] as it is, and 500 for
// others, also for an empty subject.
//
// To see what a limit would do, let another one count and observe: New with the limit
// [math.MaxInt], and with an Options.Observe that looks for a [Decision] whose Running is too
// high.
func New(limit int, identify func(r *http.Request) (Caller, error), opts Options) (*Limiter, error) {
	if identify == nil {
		return nil, errors.New("inflight: New: identify must not be nil")
	}
	return newLimiter(limit, identify, opts)
}

// NewProcess returns a Limiter that allows limit requests at once, of all clients
// together, and refuses further ones with 503.
//
// Keep health checks outside it: they would fail while the process is only busy.
// Give long responses, such as server-sent events and WebSockets, a Limiter of their
// own. A request also counts while its body arrives, so set ReadTimeout and
// WriteTimeout of [http.Server]: slow clients could otherwise occupy the process.
func NewProcess(limit int, opts Options) (*Limiter, error) {
	return newLimiter(limit, nil, opts)
}

func newLimiter(limit int, identify func(*http.Request) (Caller, error), opts Options) (*Limiter, error) {
	if limit < 1 {
		return nil, fmt.Errorf("inflight: the limit must be 1 request or more, got %d", limit)
	}
	if err := opts.validate(); err != nil {
		return nil, err
	}
	refused := overloaded
	if identify != nil {
		refused = tooManyRequests(limit).Preencoded()
	}
	return &Limiter{opts: opts, limit: limit, identify: identify, refused: refused, seed: maphash.MakeSeed()}, nil
}

// Stats returns the present numbers. They are not of one instant while requests begin
// and end.
func (l *Limiter) Stats() (total Stats) {
	for i := range l.shards {
		s := l.shards[i].read()
		total.Running += s.Running
		total.Waiting += s.Waiting
		total.Subjects += s.Subjects
		total.Admitted += s.Admitted
		total.Refused += s.Refused
	}
	if l.opts.Shared != nil {
		total.Admitted = l.shared.admitted.Load()
		total.Refused += l.shared.refused.Load()
		total.Unshared = l.shared.unshared.Load()
	}
	return total
}

func (l *Limiter) shard(subject string) *shard {
	return &l.shards[maphash.String(l.seed, subject)%shardCount]
}

// enter decides a request, and waits in the queue if it must. If it is admitted, it counts
// until [shard.leave] is called.
func (l *Limiter) enter(ctx context.Context, s *shard, subject string, limit int) Decision {
	d, turn := s.enter(subject, limit, l.opts.Queue)
	if turn == nil {
		return d
	}
	began := time.Now()
	select {
	case <-turn.Value.(granted):
	case <-time.After(l.opts.Wait):
	case <-ctx.Done():
	}
	d.Admitted, d.Running = s.endWait(subject, turn)
	d.Waited = time.Since(began)
	return d
}

// share asks Options.Shared about a request that d admits, and corrects d. leave, unless it is
// nil, ends the request there.
func (l *Limiter) share(ctx context.Context, subject string, d Decision) (_ Decision, leave func()) {
	leave, err := l.opts.Shared(ctx, subject, d.Limit)
	switch {
	case err != nil:
		l.shared.unshared.Add(1)
	case leave == nil:
		l.shared.refused.Add(1)
		d.Admitted = false
		d.Running--
		return d, nil
	}
	l.shared.admitted.Add(1)
	return d, leave
}
