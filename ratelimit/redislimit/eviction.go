package redislimit

import (
	"context"

	"github.com/redis/go-redis/v9"
)

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
