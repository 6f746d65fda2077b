//go:build unix

package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// await waits until a counter has grown by n.
func await(t *testing.T, what string, counter *atomic.Int64, n int64) {
	t.Helper()
	until := counter.Load() + n
	for deadline := time.Now().Add(time.Minute); counter.Load() < until; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%s: only %d of %d in a minute", what, counter.Load()-until+n, n)
		}
	}
}

func TestScriptFlush(t *testing.T) {
	s := redistest.Start(t)
	c, other := clientOf(t, s), clientOf(t, s)
	const limit, callers, each = 1500, 8, 250
	l, plan := newLimiter(t, c), lasting(limit)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				if i%10 == caller {
					if err := other.ScriptFlush(ctx).Err(); err != nil {
						t.Error(err)
					}
				}
				d, err := l.Take(ctx, "a", plan, 1)
				if err != nil {
					t.Errorf("a flush of scripts was noticed: %v", err)
				}
				if d.Allowed() {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Wait()
	if admitted.Load() != limit {
		t.Errorf("%d of %d were admitted, want %d", admitted.Load(), callers*each, limit)
	}
}

// throughAndBeside returns two engines with the same subjects, of which the first
// uses the proxy.
func throughAndBeside(t *testing.T, proxy *redistest.Proxy, s *redistest.Server) (through, beside *redislimit.Limiter) {
	t.Helper()
	c := redis.NewClient(&redis.Options{Addr: proxy.Addr})
	t.Cleanup(func() { c.Close() })
	for _, engine := range []struct {
		l      **redislimit.Limiter
		client *redis.Client
	}{{&through, c}, {&beside, clientOf(t, s)}} {
		var err error
		if *engine.l, err = redislimit.New(engine.client, redislimit.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	return through, beside
}

// warm has the client find out that its connection was cut, if it was, and make
// another one.
func warm(t *testing.T, l *redislimit.Limiter) {
	t.Helper()
	_, err := l.Take(ctx, "warm", lasting(1<<30), 1)
	if err != nil {
		_, err = l.Take(ctx, "warm", lasting(1<<30), 1)
	}
	if err != nil {
		t.Fatalf("on a new connection: %v", err)
	}
}

// A server stops, and continues: callers leave when their contexts end,
// calls that ended before they were sent are not charged, and the others are
// answered.
func TestStop(t *testing.T) {
	s := redistest.Start(t)
	const limit, leavers = 1 << 30, 200
	l, err := redislimit.New(clientOf(t, s), redislimit.Options{})
	if err != nil {
		t.Fatal(err)
	}
	redislimit.OneInFlight(l)
	plan := lasting(limit)
	if _, err := l.Take(ctx, "a", plan, 1); err != nil {
		t.Fatal(err)
	}
	s.Stop()
	var wg sync.WaitGroup
	for range leavers {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(ctx, 50*time.Millisecond)
			defer cancel()
			start := time.Now()
			if _, err := l.Take(ctx, "a", plan, 1); err != context.DeadlineExceeded {
				t.Errorf("from a server that is stopped: %v, want %v", err, context.DeadlineExceeded)
			}
			if took := time.Since(start); took > time.Minute {
				t.Errorf("a caller with 50ms left after %v", took)
			}
		})
	}
	wg.Wait()
	stayed := make(chan error)
	go func() {
		_, err := l.Take(ctx, "a", plan, 1)
		stayed <- err
	}()
	s.Cont()
	if err := <-stayed; err != nil {
		t.Errorf("a call that lasted until the server continued: %v", err)
	}
	if n := used(t, l, "a", limit); n != 2 {
		t.Errorf("%d were charged, want 2: one before, and the one that lasted", n)
	}
}

// A decision that comes after the deadline of its caller is refunded. One that the
// caller cancelled stays charged.
func TestLateAnswer(t *testing.T) {
	for _, test := range []struct {
		name  string
		leave func(calls *scriptCounter) context.Context // a context that ends
		want  int64
	}{
		{"the time is up", func(*scriptCounter) context.Context {
			ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
			t.Cleanup(cancel)
			return ctx
		}, 0},
		{"the caller gave up", func(calls *scriptCounter) context.Context {
			ctx, cancel := context.WithCancel(ctx)
			before := calls.Load()
			go func() {
				for calls.Load() == before { // until the request is sent
					time.Sleep(time.Millisecond)
				}
				cancel()
			}()
			return ctx
		}, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := redistest.Start(t)
			c, calls := clientOf(t, s), new(scriptCounter)
			c.AddHook(calls)
			l := newLimiter(t, c)
			if _, err := l.Peek(ctx, "a", lasting(9)); err != nil {
				t.Fatal(err)
			}
			s.Stop()
			if _, err := l.Take(test.leave(calls), "a", lasting(9), 5); err == nil {
				t.Fatal("a server that is stopped decided")
			}
			s.Cont()
			// A refund is made before the batcher sends anything else.
			for deadline := time.Now().Add(time.Minute); used(t, l, "a", 9) != test.want; {
				if time.Now().After(deadline) {
					t.Fatalf("%d of 5 units are charged, want %d", used(t, l, "a", 9), test.want)
				}
			}
		})
	}
}

func TestFullMemory(t *testing.T) {
	s := redistest.Start(t, "--maxmemory", "3mb", "--maxmemory-policy", "noeviction")
	c := clientOf(t, s)
	l := newLimiter(t, c)
	admitted := map[string]bool{}
	for i := range 100_000 {
		subject := fmt.Sprint("subject ", i)
		d, err := l.Take(ctx, subject, lasting(1), 1)
		if err != nil {
			if !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("full memory: %v, want an error that wraps ErrUnavailable", err)
			}
			if !strings.Contains(err.Error(), "OOM") {
				t.Errorf("full memory: %v, want the error of the server, OOM", err)
			}
			break
		}
		admitted[subject] = d.Allowed()
	}
	if len(admitted) == 100_000 {
		t.Fatal("the memory did not fill up")
	}
	if err := c.ConfigSet(ctx, "maxmemory", "0").Err(); err != nil {
		t.Fatal(err)
	}
	for subject := range admitted {
		if d, err := l.Take(ctx, subject, lasting(1), 1); err != nil || d.Allowed() {
			t.Fatalf("%s was admitted twice, or not decided: %v, %v", subject, d.Outcome, err)
		}
	}
	if d, err := l.Take(ctx, fmt.Sprint("subject ", len(admitted)), lasting(1), 1); err != nil || !d.Allowed() {
		t.Errorf("the subject that there was no room for: %v, %v, want that it was not charged", d.Outcome, err)
	}
}
