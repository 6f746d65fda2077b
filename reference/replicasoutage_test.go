//go:build unix

package main_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// While Redis is away each replica limits by itself, so that three of them admit three
// limits, except to an owner that had used up its quota before. What they admitted is then
// in Redis, and three replicas admit one limit again.
func TestReplicasWithoutRedis(t *testing.T) {
	testenv.Long(t, "waits until three replicas use Redis again")
	t.Parallel()
	f := newFleet(t, "petstore.db", "penalty: {strikes: 0}\n")
	const limit = 30
	spent, fresh, roomy := f.key(t, "spent", "30/8784h"), f.key(t, "fresh", "30/8784h"), f.roomyKey(t, "roomy")
	send := func(key string) (admitted int) {
		c := &crowd{call: call{key: key}, charged: 200}
		c.run(t, f.replicas, 6, limit)
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
		if a := mustAsk(t, 503, "DELETE", p.admin+"/bans?owner=roomy", "", ""); !strings.Contains(string(a.body), "on this server, and perhaps on no other") || a.header.Get("Retry-After") == "" {
			t.Errorf("an unban without Redis is answered with %v %s, want where it holds, and when to try again", a.header, a.body)
		}
	}

	f.redis.back()
	for i, p := range f.replicas {
		eventually(t, "the replicas use Redis again", func() bool { return p.usesRedis(t) })
		if lost := p.failover(t, "lost_total"); lost != 0 {
			t.Errorf("replica %d has lost usage of %d subjects", i+1, lost)
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

// One of three replicas is killed under load. Only requests to that one fail, and a client
// that sends its pet to another replica again gets the same pet, whether or not the first
// one had stored it.
func TestOneOfThreeReplicasIsKilled(t *testing.T) {
	testenv.Long(t, "kills a replica under load")
	onEachDatabase(t, func(t *testing.T, database string) {
		f := newFleet(t, database, "")
		reader := f.roomyKey(t, "reader")
		load := startTraffic(t, f.roomyKey(t, "ann"), 8, f.replicas...)
		load.flows(t, 100)
		killed := f.replicas[0]
		killed.kill()
		f.replicas = f.replicas[1:]
		load.flows(t, 100)
		load.stop()

		for _, failed := range load.failed {
			if !strings.Contains(failed.text, killed.api) {
				t.Errorf("a request to a replica that was not killed failed: %s", failed.text)
			}
			if failed.method != http.MethodPost {
				continue
			}
			first := failed.mustSend(t, http.StatusCreated, f.replicas[0].api)
			again := failed.mustSend(t, http.StatusCreated, f.replicas[1].api)
			load.acknowledged(t, failed.call, first)
			load.acknowledged(t, failed.call, again)
		}
		load.checkFleet(t, f, reader, 0)
		t.Logf("%d requests, %d pets, %d requests failed", load.sent, len(load.pets), len(load.failed))
	})
}
