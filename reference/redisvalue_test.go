//go:build unix

package main_test

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A value in Redis that this version cannot read, such as one of another format, stops no
// request and is not overwritten. When it is deleted, the replicas count in Redis again,
// with what they admitted meanwhile.
func TestAValueInRedisThatReplicasCannotRead(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, "petstore.db", "")
	key := f.roomyKey(t, "ann")
	call{key: key}.mustSend(t, 200, f.balancer.url)
	c := redis.NewClient(&redis.Options{Addr: f.redis.addr})
	defer c.Close()
	counted := func() bool {
		for _, p := range f.replicas {
			s := state(t, p)
			if s.Checks["limits"] != "ok" || s.Engine.Redis.Pending > 0 {
				return false
			}
		}
		return true
	}
	eventually(t, "the first request is counted in Redis", counted)
	names, err := c.Keys(t.Context(), "petstore{*}:owner:ann").Result()
	if err != nil || len(names) != 1 {
		t.Fatalf("the keys of the owner in Redis are %q (%v), want one", names, err)
	}
	foreign := strings.Repeat("x", 300)
	if err := c.Set(t.Context(), names[0], foreign, 0).Err(); err != nil {
		t.Fatal(err)
	}
	const requests = 60
	for range requests {
		call{key: key}.mustSend(t, 200, f.balancer.url)
	}
	if got := c.Get(t.Context(), names[0]).Val(); got != foreign {
		t.Errorf("the value was changed to %q", got)
	}
	c.Del(t.Context(), names[0])
	eventually(t, "what the replicas admitted is counted in Redis", counted)
	if got := used(t, f.replicas[0], key); got != requests {
		t.Errorf("%d requests are counted in Redis, want the %d that replicas admitted", got, requests)
	}
}
