//go:build unix

package redislimit_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// A warning comes when a server begins to evict keys, as after a failover to another one, and
// once for each policy. Without a limit there is nothing to evict.
func TestEvictionIsLogged(t *testing.T) {
	s := redistest.Start(t)
	c := clientOf(t, s)
	var log testcheck.Log
	defer slog.SetDefault(slog.Default())
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	l := newLimiter(t, c) // which has the default logger
	for _, test := range []struct {
		policy, memory string
		warnings       int // so far
	}{
		{"allkeys-lru", "0", 0},
		{"noeviction", "100mb", 0},
		{"allkeys-lru", "100mb", 1},
		{"allkeys-lru", "100mb", 1},
		{"volatile-ttl", "100mb", 2},
		{"noeviction", "100mb", 2},
		{"volatile-ttl", "100mb", 3},
	} {
		must(t, c.ConfigSet(ctx, "maxmemory-policy", test.policy).Err())
		must(t, c.ConfigSet(ctx, "maxmemory", test.memory).Err())
		must(t, redislimit.WarnOfEviction(l, c))
		if n := strings.Count(log.String(), "level=WARN"); n != test.warnings {
			t.Errorf("policy %s with maxmemory %s: %d warnings, want %d:\n%s", test.policy, test.memory, n, test.warnings, log.String())
		}
	}
	if text := log.String(); !strings.Contains(text, "volatile-ttl") || !strings.Contains(text, s.Addr) {
		t.Errorf("the warning does not name the policy and the server %s: %s", s.Addr, text)
	}
}

// Each master is asked, when it answers and a minute after it was asked last.
func testEvictionOfClusterIsLogged(t *testing.T, cluster *redistest.Cluster) {
	var log testcheck.Log
	l := loggingLimiter(t, clientOfCluster(t, cluster), &log)
	for _, policy := range []string{"allkeys-lru", "allkeys-lfu"} {
		for _, s := range cluster.Masters {
			must(t, clientOf(t, s).ConfigSet(ctx, "maxmemory", "1gb").Err())
			must(t, clientOf(t, s).ConfigSet(ctx, "maxmemory-policy", policy).Err())
		}
		redislimit.MinuteAfterEviction(l)
		_, err := l.Peek(ctx, "a", lasting(1))
		must(t, err)
		eventually(t, "warnings of three masters", func() bool { return strings.Count(log.String(), "maxmemory-policy="+policy) == 3 })
	}
}

// loggingLimiter returns an engine with a log.
func loggingLimiter(t *testing.T, c redis.UniversalClient, log *testcheck.Log) *redislimit.Limiter {
	t.Helper()
	opts := redislimit.Options{Prefix: fmt.Sprint("log", prefixes.Add(1)), Logger: slog.New(slog.NewTextHandler(log, nil))}
	l, err := redislimit.New(c, opts)
	must(t, err)
	return l
}
