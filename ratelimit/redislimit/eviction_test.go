//go:build unix

package redislimit_test

import (
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func TestEvictionIsLogged(t *testing.T) {
	for _, test := range []struct {
		policy, memory string
		logged         bool
	}{
		{"allkeys-lru", "100mb", true},
		{"volatile-ttl", "100mb", true},
		{"noeviction", "100mb", false},
		{"allkeys-lru", "0", false}, // there is no limit, and so nothing to evict
	} {
		s := redistest.Start(t, "--maxmemory-policy", test.policy, "--maxmemory", test.memory)
		what := fmt.Sprintf("policy %s with maxmemory %s", test.policy, test.memory)
		text := logOf(t, what, clientOf(t, s), test.logged, true)
		if test.logged && (!strings.Contains(text, test.policy) || !strings.Contains(text, s.Addr)) {
			t.Errorf("%s: the warning does not name the policy and the server %s: %s", what, s.Addr, text)
		}
	}
}

// The servers of a ring and the masters of a cluster are checked too. Without a logger the
// warning goes to the default one: no test runs beside this one, whose engines would have it.
func TestEvictionOfRingIsLogged(t *testing.T) {
	s := redistest.Start(t, "--maxmemory-policy", "allkeys-lru", "--maxmemory", "100mb")
	ring := redis.NewRing(&redis.RingOptions{Addrs: map[string]string{"one": s.Addr}})
	t.Cleanup(func() { ring.Close() })
	logOf(t, "a ring", ring, true, true)
	logOf(t, "the default logger", clientOf(t, s), true, false)
}

func testEvictionOfClusterIsLogged(t *testing.T, cluster *redistest.Cluster) {
	for _, s := range cluster.Masters {
		must(t, clientOf(t, s).ConfigSet(ctx, "maxmemory", "1gb").Err())
		must(t, clientOf(t, s).ConfigSet(ctx, "maxmemory-policy", "allkeys-lru").Err())
	}
	logOf(t, "a cluster", clientOfCluster(t, cluster), true, true)
}

// logOf returns what an engine logs about its servers. It waits for a warning if one
// is wanted, and otherwise makes the check once more.
func logOf(t *testing.T, what string, client redis.UniversalClient, wanted, ownLogger bool) string {
	t.Helper()
	var log testcheck.Log
	logger := slog.New(slog.NewTextHandler(&log, nil))
	opts := redislimit.Options{Logger: logger}
	if !ownLogger {
		opts.Logger = nil
		defer slog.SetDefault(slog.Default())
		slog.SetDefault(logger)
	}
	l, err := redislimit.New(client, opts)
	must(t, err)
	for i := range 3 {
		_, err := l.Take(ctx, fmt.Sprint(i), lasting(1), 1)
		must(t, err)
	}
	for deadline := time.Now().Add(time.Minute); wanted && log.String() == "" && time.Now().Before(deadline); {
		time.Sleep(time.Millisecond)
	}
	if single, ok := client.(*redis.Client); ok && !wanted {
		must(t, redislimit.WarnOfEviction(l, single))
	}
	n, most := strings.Count(log.String(), "level=WARN"), 1
	if _, ok := client.(*redis.ClusterClient); ok {
		most = 3 // one for each master
	}
	if n > most || (n > 0) != wanted {
		t.Errorf("%s: %d warnings, want one for each server: %v\n%s", what, n, wanted, log.String())
	}
	return log.String()
}
