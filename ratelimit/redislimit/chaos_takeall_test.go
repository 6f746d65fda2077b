//go:build unix

package redislimit_test

import (
	"context"
	"errors"
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

// Groups of charges, of two processes, are all or none whatever happens: the server is
// killed and stopped, forgets its scripts, and loses connections, and callers go away. In
// the end the shared subject was charged what the others were together, no less than was
// admitted, and no more than its limit.
func TestChaosOfGroups(t *testing.T) {
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
	var admitted, refused, unknown atomic.Int64
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
				switch {
				case errors.Is(err, context.Canceled), errors.Is(err, ratelimit.ErrUnavailable):
					unknown.Add(1)
				case err != nil:
					t.Error(err)
				case decisions[0].Allowed() && decisions[1].Allowed():
					admitted.Add(1)
				case decisions[0].Outcome != ratelimit.Allowed && decisions[1].Outcome != ratelimit.Allowed:
					refused.Add(1)
				default:
					t.Errorf("one of two charges was made: %v and %v", decisions[0].Outcome, decisions[1].Outcome)
				}
			}
		})
	}
	wg.Go(func() {
		c := clientOf(t, s)
		for run.Err() == nil {
			time.Sleep(3 * time.Millisecond)
			_ = c.ScriptFlush(run).Err() // the server may be down
		}
	})
	r := rand.New(rand.NewPCG(seed, callers))
	for run.Err() == nil {
		select {
		case <-run.Done():
		case <-time.After(time.Duration(r.IntN(300)) * time.Millisecond):
		}
		switch r.IntN(3) {
		case 0:
			s.Kill()
			s.Restart()
		case 1:
			s.Stop()
			time.Sleep(time.Duration(r.IntN(300)) * time.Millisecond)
			s.Cont()
		case 2:
			proxy.CutAfter(r.IntN(1000))
		}
	}
	wg.Wait()
	proxy.CutAfter(-1)
	beside := newLimiterOf(t, clientOf(t, s), engines[0])
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if _, err := beside.Peek(ctx, "everybody", shared); err == nil {
			break
		} else if time.Now().After(deadline) { // it loads what it kept
			t.Fatal(err)
		}
	}
	charged, users := used(t, beside, "everybody", limit), int64(0)
	for i := range 3 {
		users += used(t, beside, fmt.Sprint("user ", i), 1<<30)
	}
	t.Logf("admitted %d, refused %d, unknown %d, charged %d", admitted.Load(), refused.Load(), unknown.Load(), charged)
	if charged != users {
		t.Errorf("the shared subject was charged %d units, and the others %d", charged, users)
	}
	if low, high := admitted.Load(), min(admitted.Load()+unknown.Load(), limit); charged < low || charged > high {
		t.Errorf("%d units are charged, want from %d to %d", charged, low, high)
	}
}
