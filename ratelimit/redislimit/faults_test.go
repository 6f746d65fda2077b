//go:build unix

package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A decision that comes after the deadline of its caller is refunded, with a share. One that
// the caller cancelled stays charged.
func TestLateAnswer(t *testing.T) {
	timeIsUp := func(*scriptCounter) context.Context {
		ctx, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
		t.Cleanup(cancel)
		return ctx
	}
	givenUp := func(calls *scriptCounter) context.Context {
		ctx, cancel := context.WithCancel(ctx)
		before := calls.Load()
		go func() {
			for calls.Load() == before { // until the request is sent
				time.Sleep(time.Millisecond)
			}
			cancel()
		}()
		return ctx
	}
	take := func(ctx context.Context, l *redislimit.Limiter) error { return second(l.Take(ctx, "a", lasting(9), 5)) }
	lease := func(ctx context.Context, l *redislimit.Limiter) error {
		return second(l.Lease(ctx, "a", lasting(9), 2, engine.Terms{More: 3}))
	}
	for _, test := range []struct {
		name  string
		call  func(context.Context, *redislimit.Limiter) error // charges five units
		leave func(calls *scriptCounter) context.Context       // a context that ends
		want  int64
	}{
		{"the time is up", take, timeIsUp, 0},
		{"the time of a lease is up", lease, timeIsUp, 0},
		{"the caller gave up", take, givenUp, 5},
		{"the caller gave up a lease", lease, givenUp, 5},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := redistest.Start(t)
			c, calls := clientOf(t, s), new(scriptCounter)
			c.AddHook(calls)
			l := newLimiter(t, c)
			_, err := l.Peek(ctx, "a", lasting(9))
			must(t, err)
			s.Stop()
			if err := test.call(test.leave(calls), l); err == nil {
				t.Fatal("a server that is stopped decided")
			}
			s.Cont()
			// A refund is made before the batcher sends anything else.
			eventually(t, fmt.Sprintf("%d of 5 units are charged", test.want), func() bool { return used(t, l, "a", 9) == test.want })
		})
	}
}

// A call whose context has ended is not sent.
func TestContextThatHasEnded(t *testing.T) {
	_, c := mini(t)
	l := newLimiter(t, c)
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := l.Take(ended, "a", lasting(9), 1); !errors.Is(err, context.Canceled) || used(t, l, "a", 9) != 0 {
		t.Errorf("%v, and %d units are used, want %v and none", err, used(t, l, "a", 9), context.Canceled)
	}
}
