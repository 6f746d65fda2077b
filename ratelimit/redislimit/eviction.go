package redislimit

import (
	"context"
	"log/slog"
	"strings"
	"sync"

	"github.com/redis/go-redis/v9"
)

// An evictionCheck warns of servers that evict keys.
type evictionCheck struct {
	client redis.UniversalClient
	logger *slog.Logger
	once   sync.Once
}

// start runs the check in a goroutine, the first time that it is called.
func (e *evictionCheck) start() {
	e.once.Do(func() { go e.run() })
}

func (e *evictionCheck) run() {
	ctx := context.Background()
	switch client := e.client.(type) {
	case *redis.ClusterClient:
		_ = client.ForEachMaster(ctx, e.server)
	case *redis.Ring:
		_ = client.ForEachShard(ctx, e.server)
	case *redis.Client:
		_ = e.server(ctx, client)
	}
}

// server checks one server. A server that does not tell its policy, such as to a user
// without the right to INFO, is passed over.
func (e *evictionCheck) server(ctx context.Context, client *redis.Client) error {
	info, err := client.Info(ctx, "memory").Result()
	if err != nil {
		return nil // nothing depends on it
	}
	policy, limit := field(info, "maxmemory_policy"), field(info, "maxmemory")
	if policy != "" && policy != "noeviction" && limit != "0" {
		e.logger.WarnContext(ctx, "redislimit: Redis evicts keys when its memory is full, "+
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
