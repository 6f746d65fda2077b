//go:build unix

package main_test

import (
	"strings"
	"testing"
)

// While Redis is away each replica limits by itself, so that three of them admit three
// limits, except to an owner that had used up its quota before. What they admitted is then
// in Redis, and three replicas admit one limit again.
func TestReplicasWithoutRedis(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, "petstore.db", "penalty: {strikes: 0}\n")
	const limit = 30
	spent, fresh, roomy := f.key(t, "spent", "30/8784h"), f.key(t, "fresh", "30/8784h"), f.roomyKey(t, "roomy")
	send := func(key string) (admitted int) {
		c := &crowd{call: call{key: key}, charged: 200}
		c.run(t, f.balancer.url, 6, limit)
		return c.admitted
	}
	send(spent)
	f.allAnswer(t, call{key: spent}, 429)

	f.redis.kill()
	if got := send(fresh); got != 3*limit {
		t.Errorf("three replicas without Redis admitted %d requests of an owner, want %d each", got, limit)
	}
	if got := send(spent); got != 0 {
		t.Errorf("three replicas without Redis admitted %d requests of an owner that had nothing left", got)
	}
	if got := send(roomy); got != 6*limit {
		t.Errorf("three replicas without Redis admitted %d requests of an owner below its limit, want all %d", got, 6*limit)
	}
	for _, p := range f.replicas {
		if a := mustAsk(t, 200, "GET", p.admin+"/readyz", "", ""); !strings.Contains(string(a.body), "on_redis_failure: local") {
			t.Errorf("without Redis a replica says that it is ready as %s, want the mode in force", a.body)
		}
	}

	f.redis.back()
	for i, p := range f.replicas {
		eventually(t, "the replicas use Redis again", func() bool {
			s := state(t, p)
			return s.Checks["limits"] == "ok" && s.Engine.Redis.Pending == 0
		})
		if s := state(t, p); s.Engine.Redis.Lost != 0 {
			t.Errorf("replica %d has lost usage of %d subjects", i+1, s.Engine.Redis.Lost)
		}
	}
	f.allAnswer(t, call{key: fresh}, 429)
	for i, p := range f.replicas {
		if got := used(t, p, roomy); got != 6*limit {
			t.Errorf("replica %d says that %d requests are counted in Redis, want %d", i+1, got, 6*limit)
		}
	}
	f.undisturbed(t, func(owner string) func() {
		got := send(f.key(t, owner, "30/8784h"))
		return func() {
			if got != limit {
				t.Errorf("three replicas with Redis again admitted %d requests, want %d", got, limit)
			}
		}
	})
}
