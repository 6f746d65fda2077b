//go:build unix

package redislimit_test

import (
	"context"
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
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// chaos is how long TestChaos runs. Minutes are worth it now and then:
//
//	go test -run TestChaos -chaos 5m -timeout 10m ./ratelimit/redislimit
var chaos = flag.Duration("chaos", time.Second, "how long TestChaos kills, stops and continues its server")

// An account is what the callers of one subject know.
type account struct {
	admitted, unknown atomic.Int64 // requests; unknown: there was an error
	refunded, perhaps atomic.Int64 // requests that were given back; perhaps: there was an error
	subject           string
	plan, other       *ratelimit.Plan // two versions of one plan
}

func (a *account) request(l ratelimit.Limiter, r *rand.Rand) {
	budget, cancel := context.WithTimeout(ctx, time.Duration(1+r.IntN(300))*time.Millisecond)
	defer cancel()
	plan := a.plan
	if r.IntN(2) == 0 {
		plan = a.other
	}
	d, err := l.Take(budget, a.subject, plan, 1)
	switch {
	case err != nil:
		a.unknown.Add(1)
		return
	case !d.Allowed():
		return
	}
	a.admitted.Add(1)
	if r.IntN(4) > 0 {
		return
	}
	if err := l.(engine.Adjuster).Adjust(budget, a.subject, &d, 0, ""); err != nil {
		a.perhaps.Add(1)
	} else {
		a.refunded.Add(1)
	}
}

// A server that keeps every acknowledged write is killed, stopped and continued, and
// its connections are cut, at random. In the end the books balance: nothing that was
// admitted is missing, nothing is charged twice, and no more was admitted than the
// limit and what was given back.
func TestChaos(t *testing.T) {
	t.Parallel()
	const callers = 24
	seed := rand.Uint64()
	t.Logf("seed %d, for %v", seed, *chaos)
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	proxy := redistest.StartProxy(t, s.Addr)
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr, ReadTimeout: 200 * time.Millisecond, DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	l := newLimiter(t, c)
	accounts := make([]*account, 5)
	for i := range accounts {
		limit := []int64{3000, 1 << 30}[i%2] // one that is used up, and one that is not
		accounts[i] = &account{subject: fmt.Sprint("subject ", i), plan: lasting(limit), other: lasting(limit)}
	}
	run, end := context.WithTimeout(ctx, *chaos)
	defer end()
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(seed, uint64(caller)))
			for run.Err() == nil {
				accounts[r.IntN(len(accounts))].request(l, r)
			}
		})
	}
	r := rand.New(rand.NewPCG(seed, callers))
	pause := func() {
		select {
		case <-run.Done():
		case <-time.After(time.Duration(r.IntN(250)) * time.Millisecond):
		}
	}
	events := map[string]int{}
	for run.Err() == nil {
		pause()
		switch r.IntN(4) {
		case 0:
			events["killed"]++
			s.Kill()
			pause()
			s.Restart()
		case 1:
			events["stopped"]++
			s.Stop()
			pause()
			s.Cont()
		case 2:
			events["stopped and killed"]++
			s.Stop()
			pause()
			s.Restart()
		case 3:
			events["cut"]++
			proxy.CutAfter(r.IntN(1000))
		}
	}
	wg.Wait()
	proxy.CutAfter(-1)
	beside := newLimiterOf(t, clientOf(t, s), l)
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		_, err := beside.Peek(ctx, accounts[0].subject, accounts[0].plan)
		if err == nil {
			break
		} else if time.Now().After(deadline) { // it loads what it kept
			t.Fatal(err)
		}
	}
	for _, a := range accounts {
		admitted, unknown, refunded, perhaps := a.admitted.Load(), a.unknown.Load(), a.refunded.Load(), a.perhaps.Load()
		limit := engine.Of(a.plan).Quota(0).Limit
		charged := used(t, beside, a.subject, limit)
		t.Logf("%s: admitted %d, unknown %d, refunded %d, perhaps %d, charged %d", a.subject, admitted, unknown, refunded, perhaps, charged)
		if low, high := admitted-refunded-perhaps, admitted+unknown-refunded; charged < low || charged > high {
			t.Errorf("%s: %d units are charged, want from %d to %d", a.subject, charged, low, high)
		}
		if most := limit + refunded + perhaps; admitted > most {
			t.Errorf("%s: %d requests were admitted, want at most %d", a.subject, admitted, most)
		}
	}
	t.Log(events)
}

// Two versions of a plan, such as before and after its configuration was read again,
// count in the same windows: a limit that was raised or lowered applies to all that
// was used under either.
func TestTwoVersionsOfAPlan(t *testing.T) {
	l := newLimiter(t, clientOf(t, redistest.Start(t)))
	const small, large, callers = 100, 150, 32
	var admitted, under [2]atomic.Int64
	plans := [2]*ratelimit.Plan{lasting(small), lasting(large)}
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range 20 {
				version := (caller + i) % 2
				d, err := l.Take(ctx, "a", plans[version], 1)
				if err != nil {
					t.Error(err)
				}
				if d.Allowed() {
					admitted[version].Add(1)
					if used := engine.Of(d.Plan).Quota(0).Limit - d.States[0].Remaining; version == 0 && used > small {
						under[version].Add(1)
					}
				}
			}
		})
	}
	wg.Wait()
	if n := admitted[0].Load() + admitted[1].Load(); n != large {
		t.Errorf("%d were admitted under both versions, want the larger limit, %d", n, large)
	}
	if n := under[0].Load(); n > 0 {
		t.Errorf("%d were admitted under the smaller limit when it was used up", n)
	}
}
