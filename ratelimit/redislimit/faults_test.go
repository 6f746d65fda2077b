//go:build unix

package redislimit_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/redistest"
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
			_, err := l.Peek(ctx, "a", lasting(9))
			must(t, err)
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
