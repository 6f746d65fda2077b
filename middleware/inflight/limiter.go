package inflight

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math"
	"net/http"
	"strconv"
	"time"
)

// A Caller is the client that a request counts for.
type Caller struct {
	// Subject is the name that requests are counted for; it must not be empty.
	// Each kind of caller needs a prefix of its own, such as "owner:"
	// (apikey.OwnerSubject) and "network:" (clientip.NetworkSubject), so that a name
	// which a caller chose is never the name of another.
	Subject string

	// Limit is how many requests of the subject may run at once, for callers that differ
	// in it, such as by plan. 0 means the limit given to New. The Limit of the latest
	// request holds for all of its subject.
	Limit int

	// Exempt says that the request neither counts nor is refused. The other fields are
	// then ignored.
	Exempt bool
}

// A Limiter limits how many requests run at once. [New] and [NewProcess] make it. It is
// safe for concurrent use, and must not be copied.
type Limiter struct {
	opts       Options
	limit      int
	identify   func(*http.Request) (Caller, error) // nil: all requests count together
	retryAfter []string
	refusals   refusals

	seed   maphash.Seed
	shards [shardCount]shard
}

// shardCount is how many locks there are, as each request takes one twice.
const shardCount = 32

// New returns a Limiter that allows limit requests of each subject at once, and refuses
// further ones with 429. identify returns the Caller of a request. If it returns an
// error, the request is answered with it: an [apierror.Error] as it is, and 500 for
// others, also for an empty subject. In shadow mode the request is served instead.
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
	return &Limiter{
		opts: opts, limit: limit, identify: identify,
		retryAfter: []string{strconv.FormatInt(int64(max(1, math.Ceil(opts.RetryAfter.Seconds()))), 10)},
		seed:       maphash.MakeSeed(),
	}, nil
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
	return total
}

func (l *Limiter) shard(subject string) *shard {
	return &l.shards[maphash.String(l.seed, subject)%shardCount]
}

// enter decides a request, and waits in the queue if it must. If it is admitted, or in
// shadow mode, it counts until [shard.leave] is called.
func (l *Limiter) enter(ctx context.Context, s *shard, subject string, limit int) Decision {
	d, turn := s.enter(subject, limit, l.opts.Queue, l.opts.Shadow)
	if turn == nil {
		return d
	}
	began := time.Now()
	timer := time.NewTimer(l.opts.Wait)
	defer timer.Stop()
	select {
	case <-turn.Value.(granted):
	case <-timer.C:
	case <-ctx.Done():
	}
	d.Admitted, d.Running = s.endWait(subject, turn)
	d.Waited = time.Since(began)
	return d
}
