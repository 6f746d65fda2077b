//go:build unix

package redislimit_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// chaos is how long TestChaos runs. Minutes are worth it now and then:
//
//	go test -run TestChaos -chaos 5m -timeout 10m ./ratelimit/redislimit
var chaos = flag.Duration("chaos", time.Second, "how long TestChaos kills, stops and continues its server")

// disturb kills, stops and continues a server, has it forget its scripts, and cuts its
// connections, at random, until the context ends. It leaves the server running.
func disturb(run context.Context, t *testing.T, s *redistest.Server, proxy *redistest.Proxy, r *rand.Rand) {
	t.Helper()
	pause := func() {
		select {
		case <-run.Done():
		case <-time.After(time.Duration(r.IntN(250)) * time.Millisecond):
		}
	}
	for run.Err() == nil {
		pause()
		switch r.IntN(5) {
		case 0:
			s.Kill()
			pause()
			s.Restart()
		case 1:
			s.Stop()
			pause()
			s.Cont()
		case 2:
			s.Stop()
			pause()
			s.Restart()
		case 3:
			_, _ = s.Do("script", "flush")
		case 4:
			proxy.CutAfter(r.IntN(1000))
		}
	}
	proxy.CutAfter(-1)
}

// recovered returns an engine with the subjects of another one, once the server has loaded
// what it kept.
func recovered(t *testing.T, s *redistest.Server, other *redislimit.Limiter) *redislimit.Limiter {
	t.Helper()
	l := newLimiterOf(t, clientOf(t, s), other)
	eventually(t, "a decision", func() bool { return second(l.Peek(ctx, "a", lasting(1))) == nil })
	return l
}

// outcomes are those of groups of charges.
type outcomes struct{ admitted, refused, unknown atomic.Int64 }

// add notes what became of two charges, which are both made, or none.
func (o *outcomes) add(t *testing.T, decisions []ratelimit.Decision, err error) {
	switch {
	case errors.Is(err, context.Canceled), errors.Is(err, ratelimit.ErrUnavailable):
		o.unknown.Add(1)
	case err != nil:
		t.Error(err)
	case decisions[0].Allowed() && decisions[1].Allowed():
		o.admitted.Add(1)
	case decisions[0].Outcome != ratelimit.Allowed && decisions[1].Outcome != ratelimit.Allowed:
		o.refused.Add(1)
	default:
		t.Errorf("one of two charges was made: %v and %v", decisions[0].Outcome, decisions[1].Outcome)
	}
}

// Groups of charges, of two processes, are all or none whatever happens: the server is
// killed and stopped, forgets its scripts, and loses connections, and callers go away. In
// the end the shared subject was charged what the others were together, no less than was
// admitted, and no more than its limit.
func TestChaos(t *testing.T) {
	t.Parallel()
	const callers, limit = 24, 20_000
	seed := rand.Uint64()
	t.Logf("seed %d, for %v", seed, *chaos)
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	proxy := redistest.StartProxy(t, s.Addr)
	var engines [2]*redislimit.Limiter
	for i := range engines {
		c := redis.NewClient(&redis.Options{Addr: proxy.Addr, ReadTimeout: 200 * time.Millisecond, DialerRetries: 1, MaxRetries: -1})
		t.Cleanup(func() { c.Close() })
		if i == 0 {
			engines[i] = newLimiter(t, c)
		} else {
			engines[i] = newLimiterOf(t, c, engines[0])
		}
	}
	plans := [2]*ratelimit.Plan{lasting(1 << 30), lasting(1 << 30)}
	shared := lasting(limit)
	var seen outcomes
	run, end := context.WithTimeout(ctx, *chaos)
	defer end()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(caller)))
			charges, decisions := make([]ratelimit.Charge, 2), make([]ratelimit.Decision, 2)
			for run.Err() == nil {
				user := ratelimit.Charge{Subject: fmt.Sprint("user ", r.IntN(3)), Plan: plans[r.IntN(2)], Cost: 1}
				everybody := ratelimit.Charge{Subject: "everybody", Plan: shared, Cost: 1}
				charges[0], charges[1] = user, everybody
				if r.IntN(2) == 0 {
					charges[0], charges[1] = everybody, user
				}
				// A deadline would have the charges given back, of one subject after the other.
				patience, cancel := context.WithCancel(ctx)
				timer := time.AfterFunc(time.Duration(1+r.IntN(100))*time.Millisecond, cancel)
				err := engines[r.IntN(2)].TakeAll(patience, charges, decisions)
				timer.Stop()
				cancel()
				seen.add(t, decisions, err)
			}
		})
	}
	disturb(run, t, s, proxy, rand.New(rand.NewPCG(seed, callers)))
	wg.Wait()
	beside := recovered(t, s, engines[0])
	charged, users := used(t, beside, "everybody", limit), int64(0)
	for i := range 3 {
		users += used(t, beside, fmt.Sprint("user ", i), 1<<30)
	}
	t.Logf("admitted %d, refused %d, unknown %d, charged %d", seen.admitted.Load(), seen.refused.Load(), seen.unknown.Load(), charged)
	if charged != users {
		t.Errorf("the shared subject was charged %d units, and the others %d", charged, users)
	}
	if low, high := seen.admitted.Load(), min(seen.admitted.Load()+seen.unknown.Load(), limit); charged < low || charged > high {
		t.Errorf("%d units are charged, want from %d to %d", charged, low, high)
	}
}
