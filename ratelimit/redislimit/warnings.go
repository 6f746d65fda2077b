package redislimit

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
)

// What the engine warns of: servers that evict keys, and requests that fail for some subjects.

// logInterval is the time from one check of the servers' policies to the next, and from one line
// about an error of some subjects to the next.
const logInterval = time.Minute

// A lastTime is when something was done last, in Unix nanoseconds; 0: never.
type lastTime struct{ atomic.Int64 }

// due reports whether an interval has passed since the last time, which becomes the
// present one.
func (t *lastTime) due(interval time.Duration) bool {
	now, then := time.Now().UnixNano(), t.Load()
	return now-then >= int64(interval) && t.CompareAndSwap(then, now)
}

// warnOfEviction warns of servers that evict keys.
func (s *sender) warnOfEviction() {
	ctx := context.Background()
	switch client := s.client.(type) {
	case *redis.ClusterClient:
		_ = client.ForEachMaster(ctx, s.checkEviction)
	case *redis.Client:
		_ = s.checkEviction(ctx, client)
	}
}

// checkEviction checks one server, and warns if its policy is another one than the last time. A
// server that does not tell its policy, such as to a user without the right to INFO, is passed
// over.
func (s *sender) checkEviction(ctx context.Context, client *redis.Client) error {
	info := client.InfoMap(ctx, "memory").Val()["Memory"] // empty after an error
	policy := info["maxmemory_policy"]
	if policy == "" || info["maxmemory"] == "0" {
		policy = "noeviction"
	}
	if before, _ := s.policies.Swap(client.Options().Addr, policy); policy != "noeviction" && policy != before {
		s.logger.WarnContext(ctx, "redislimit: Redis evicts keys when its memory is full, "+
			"which grants quotas twice and forgets bans: set maxmemory-policy to noeviction",
			"server", client.Options().Addr, "maxmemory-policy", policy)
	}
	return nil
}

// unknownValue says that redislimit did not write what a key holds.
func (s *sender) unknownValue(key string) error {
	return s.partial(fmt.Errorf("key %.200q holds a value that redislimit did not write: delete the key, or set another Options.Prefix", key))
}

// partial returns an error that is of some subjects only, and logs it: nothing else does, as the
// circuit of package failover stays closed.
func (s *sender) partial(err error) error {
	if s.reported.due(logInterval) {
		s.logger.Warn("redislimit: requests for some subjects fail", "error", err)
	}
	return fmt.Errorf("%w (%w)", err, partial.ErrOutage)
}
