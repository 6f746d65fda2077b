package redislimit

import (
	"context"
	"strings"

	"github.com/redis/go-redis/v9"
)

// contact looks for servers that evict keys, the first time that one has answered.
// A server that says nothing about it, such as to a user without INFO, is passed
// over.
func (l *Limiter) contact() {
	if l.contacted.Load() || !l.contacted.CompareAndSwap(false, true) {
		return
	}
	go func() {
		ctx := context.Background()
		switch client := l.client.(type) {
		case *redis.ClusterClient:
			_ = client.ForEachMaster(ctx, l.warnOfEviction)
		case *redis.Ring:
			_ = client.ForEachShard(ctx, l.warnOfEviction)
		case *redis.Client:
			_ = l.warnOfEviction(ctx, client)
		}
	}()
}

func (l *Limiter) warnOfEviction(ctx context.Context, client *redis.Client) error {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return nil // it may be forbidden, and nothing depends on it
	}
	policy, limit := field(info, "maxmemory_policy"), field(info, "maxmemory")
	if policy != "" && policy != "noeviction" && limit != "0" {
		l.logger.WarnContext(ctx, "redislimit: Redis evicts keys when its memory is full, "+
			"which grants quotas twice and forgets bans: set maxmemory-policy to noeviction",
			"server", client.Options().Addr, "maxmemory-policy", policy)
	}
	return nil
}

// field returns the value of a field in a reply to INFO, or "".
func field(info, name string) string {
	for line := range strings.Lines(info) {
		if value, ok := strings.CutPrefix(line, name+":"); ok {
			return strings.TrimSpace(value)
		}
	}
	return ""
}
