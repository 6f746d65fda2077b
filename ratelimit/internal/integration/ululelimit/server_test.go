//go:build unix

package ululelimit_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
	uluredis "github.com/ulule/limiter/v3/drivers/store/redis"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

func TestServer(t *testing.T) {
	client := redistest.Start(t).Client()
	enginetest.Run(t, func(t *testing.T, _ time.Time) enginetest.Engine {
		if err := client.FlushAll(ctx).Err(); err != nil {
			t.Fatal(err)
		}
		store, err := uluredis.NewStore(client)
		if err != nil {
			t.Fatal(err)
		}
		return enginetest.Engine{Limiter: newEngine(t, store)}
	}, gaps)
}

// The package documentation says so: with ContextTimeoutEnabled a call returns at the
// deadline of its context, whatever the timeouts of the client are.
func TestReturnsAtTheDeadline(t *testing.T) {
	server := redistest.Start(t)
	client := redis.NewClient(&redis.Options{
		Addr: server.Addr, ContextTimeoutEnabled: true, MaxRetries: -1, ReadTimeout: time.Hour,
	})
	defer client.Close()
	store, err := uluredis.NewStore(client)
	if err != nil {
		t.Fatal(err)
	}
	l := newLimiter(t, store, ululelimit.Options{})
	server.Stop()
	defer server.Cont()
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	if _, err := l.Take(short, "a", plan(ratelimit.PerMinute(1)), 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("Take from a server that does not answer: got error %v, want one that wraps ErrUnavailable", err)
	}
}
