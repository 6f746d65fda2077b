package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// foreignValues write a value of something else to a key.
var foreignValues = map[string]func(c redis.UniversalClient, key string) error{
	"an empty string": func(c redis.UniversalClient, key string) error { return c.Set(ctx, key, "", 0).Err() },
	"a short string":  func(c redis.UniversalClient, key string) error { return c.Set(ctx, key, "x", 0).Err() },
	"a string of no record's size": func(c redis.UniversalClient, key string) error {
		return c.Set(ctx, key, strings.Repeat("x", 13), 0).Err()
	},
	"a long string": func(c redis.UniversalClient, key string) error {
		return c.Set(ctx, key, strings.Repeat("x", 300), 0).Err()
	},
	"a list": func(c redis.UniversalClient, key string) error { return c.RPush(ctx, key, "x").Err() },
	"a hash": func(c redis.UniversalClient, key string) error { return c.HSet(ctx, key, "x", "y").Err() },
	"a set":  func(c redis.UniversalClient, key string) error { return c.SAdd(ctx, key, "x").Err() },
}

// testForeignValues holds an engine to it that what something else has written
// under a subject's key, or as an index of bans, is an error that names the key, and
// stays as it is.
func testForeignValues(t *testing.T, c redis.UniversalClient) {
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Minute}
	strict := ratelimit.MustPlan("", penalty, ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: strict, Cost: 1}
	operations := map[string]func(l *redislimit.Limiter) error{
		"Take": func(l *redislimit.Limiter) error { return second(l.Take(ctx, "a", strict, 1)) },
		"TakeAll": func(l *redislimit.Limiter) error {
			charges := []ratelimit.Charge{{Subject: "b", Plan: strict, Cost: 1}, {Subject: "a", Plan: strict, Cost: 1}}
			return l.TakeAll(ctx, charges, make([]ratelimit.Decision, 2))
		},
		"Lease": func(l *redislimit.Limiter) error {
			return second(l.Lease(ctx, "a", strict, 1, engine.Terms{More: 1, Denied: 3}))
		},
		"Peek":   func(l *redislimit.Limiter) error { return second(l.Peek(ctx, "a", strict)) },
		"Adjust": func(l *redislimit.Limiter) error { return l.Adjust(ctx, "a", &d, 0, "") },
		"Adjust with an id": func(l *redislimit.Limiter) error {
			return l.Adjust(ctx, "a", &d, 7, "id")
		},
		"Ban":   func(l *redislimit.Limiter) error { return l.Ban(ctx, "a", time.Minute, "") },
		"Unban": func(l *redislimit.Limiter) error { return second(l.Unban(ctx, "a")) },
		"Reset": func(l *redislimit.Limiter) error { return l.Reset(ctx, "a") },
		"Takes": func(l *redislimit.Limiter) error { // more than the limit, in one batch
			return redislimit.TakeAll(l, strict)([]string{"a", "a", "b"})
		},
	}
	for value, write := range foreignValues {
		for what, do := range operations {
			must(t, c.FlushDB(ctx).Err())
			l := newLimiter(t, c)
			_, err := l.Take(ctx, "a", strict, 1)
			must(t, err)
			key := c.Keys(ctx, "*").Val()[0]
			c.Del(ctx, key)
			must(t, write(c, key))
			holdForeign(t, c, key, what+" of "+value, func() error { return do(l) })
		}
		// An index of bans.
		l := newLimiter(t, c)
		must(t, l.Ban(ctx, "a", time.Minute, ""))
		i := slices.IndexFunc(c.Keys(ctx, "*").Val(), func(key string) bool { return strings.HasSuffix(key, "}") })
		index := c.Keys(ctx, "*").Val()[i]
		c.FlushDB(ctx)
		must(t, write(c, index))
		for range 2 {
			if err := second(l.Take(ctx, "a", strict, 1)); err != nil {
				t.Errorf("Take without a ban, where the index is %s: %v", value, err)
			}
		}
		for _, what := range []string{"Ban", "Unban", "Reset", "Lease", "Take", "TakeAll"} { // b has another index
			holdForeign(t, c, index, what+" where the index is "+value, func() error { return operations[what](l) })
		}
		holdForeign(t, c, index, "Bans where the index is "+value, func() error { return second(l.Bans(ctx)) })
		// A subject in the index.
		c.FlushDB(ctx)
		must(t, l.Ban(ctx, "a", time.Minute, ""))
		key := redislimit.Key(l, "a")
		c.Del(ctx, key)
		must(t, write(c, key))
		holdForeign(t, c, key, "Bans where a subject is "+value, func() error { return second(l.Bans(ctx)) })
	}
}

// holdForeign fails the test unless do has an error that names the key, and leaves
// what is under the key alone.
func holdForeign(t *testing.T, c redis.UniversalClient, key, what string, do func() error) {
	t.Helper()
	before, err := c.Dump(context.Background(), key).Result()
	must(t, err)
	err = do()
	if !errors.Is(err, ratelimit.ErrUnavailable) || !strings.Contains(err.Error(), `"`+key+`"`) {
		t.Errorf("%s: %v, want an error that wraps ErrUnavailable and names %q", what, err, key)
	}
	if after := c.Dump(context.Background(), key).Val(); after != before {
		t.Errorf("%s changed what something else has written", what)
	}
}

// A server that is too old for the script is told from an error in it.
func TestServerIsTooOld(t *testing.T) {
	m, c := mini(t)
	for _, text := range []string{"ERR syntax error", "ERR Error running script (call to f_0a1b): @user_script:84: @user_script: 84: ERR syntax error"} {
		m.SetError(text)
		if _, err := newLimiter(t, c).Take(ctx, "a", lasting(1), 1); !strings.HasSuffix(fmt.Sprint(err), text+": the server is too old; use Redis 7.0 or newer, or Valkey") {
			t.Errorf("got error %v, want that of Redis and which versions work", err)
		}
	}
}
