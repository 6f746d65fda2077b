//go:build unix

package main_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/admin"
)

// A crowd is clients that list pets with one key at once.
type crowd struct {
	key string

	mu       sync.Mutex
	admitted int
	denied   int
	rose     []string // where what is left was more than before
}

// run sends requests of several clients. Each request of a client goes to the next replica.
func (c *crowd) run(t *testing.T, replicas []*process, clients, each int) {
	var wg sync.WaitGroup
	for client := range clients {
		wg.Go(func() {
			before := int64(-1)
			for i := range each {
				before = c.one(t, replicas[(client+i)%len(replicas)].api, before)
			}
		})
	}
	wg.Wait()
}

func (c *crowd) one(t *testing.T, base string, before int64) (remaining int64) {
	a, err := call{key: c.key}.send(t.Context(), base)
	if err != nil {
		t.Error(err)
		return before
	}
	remaining, err = strconv.ParseInt(a.header.Get("X-RateLimit-Remaining"), 10, 64)
	if err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before >= 0 && remaining > before {
		c.rose = append(c.rose, fmt.Sprintf("from %d to %d", before, remaining))
	}
	switch a.status {
	case http.StatusOK:
		c.admitted++
	case http.StatusTooManyRequests:
		c.denied++
	default:
		t.Errorf("answered with %d: %s", a.status, a.body)
	}
	return remaining
}

// Replicas with one Redis admit the limit exactly, however many requests of an owner with two keys,
// and of a key with a limit of its own, they get. However many replicas deny a client at once, it
// gets one ban, and each of them knows it.
func TestReplicas(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "petstore.db", "penalty: {strikes: 1, grace: 0s, ban: 1h, growth: 1, max: 1h, forgive: 1h}\n")
	f.undisturbed(t, func(owner string) func() {
		one, other := f.key(t, owner, "90/8784h"), f.key(t, owner, "90/8784h")
		limited := f.key(t, "limited "+owner, "90/8784h", "--limit=25/8784h")
		crowds := []*crowd{{key: one}, {key: other}, {key: limited}}
		var wg sync.WaitGroup
		for _, c := range crowds {
			wg.Go(func() { c.run(t, f.replicas, 6, 12) })
		}
		wg.Wait()
		return func() {
			t.Helper()
			if got := crowds[0].admitted + crowds[1].admitted; got != 90 {
				t.Errorf("%d requests of an owner with two keys were admitted, want 90", got)
			}
			if got := crowds[2].admitted; got != 25 {
				t.Errorf("%d requests of a key with a limit of its own were admitted, want 25", got)
			}
			for _, c := range crowds {
				if len(c.rose) > 0 {
					t.Errorf("clients saw that what remains in a window rose: %v", c.rose)
				}
			}
			f.checkUsed(t, limited, 25)
		}
	})

	c := &crowd{key: f.key(t, "bob", "10/8784h")}
	c.run(t, f.replicas, 8, 10)
	for _, p := range f.replicas {
		var bans []admin.Ban
		must(t, json.Unmarshal([]byte(f.petstore(t, "bans", "list", "--json", adminListen(p))), &bans))
		bans = slices.DeleteFunc(bans, func(b admin.Ban) bool { return b.Owner != "bob" })
		if len(bans) != 1 || bans[0].Level != 1 {
			t.Errorf("the bans of the owner are %+v, want one, the first", bans)
		}
		if a := (call{key: c.key}).mustSend(t, 429, p.api); a.code() != "api_key_banned" {
			t.Errorf("a replica answers an owner that is banned with %s", a.code())
		}
	}
}

// With redis_shares, replicas admit at most the limit, count what they admitted in the end,
// also one that stops, and act on a ban or unban at another one before long.
func TestReplicasWithShares(t *testing.T) {
	t.Parallel()
	f := newFleet(t, "petstore.db", "redis_shares: true\nuncharged: [1000000/minute]\npenalty: {strikes: 0}\n")
	const limit = 600
	f.undisturbed(t, func(owner string) func() {
		key := f.key(t, owner, "600/8784h")
		c := &crowd{key: key}
		c.run(t, f.replicas, 6, 80)
		denied := c.denied
		f.restart(t, 0)
		c.run(t, f.replicas, 6, 60)
		return func() {
			if denied > 0 || c.admitted > limit {
				t.Errorf("%d of the first 480 requests were denied, and %d of all admitted, want none and %d at most", denied, c.admitted, limit)
			}
			for _, p := range f.replicas {
				eventually(t, "usage is what was admitted", func() bool { return used(t, p, key) == int64(c.admitted) })
			}
		}
	})

	key := f.roomyKey(t, "bob")
	load := startTraffic(t, key, 4, f.replicas...)
	for _, p := range f.replicas {
		eventually(t, "a replica does not ask Redis about each request", func() bool { return p.metrics(t)["gatehouse_lease_local_total"] > 0 })
	}
	act := func(status int, command ...string) {
		f.petstore(t, append([]string{"bans"}, command...)...)
		for _, p := range f.replicas {
			eventually(t, "a replica acts on "+command[0], func() bool {
				a, err := call{key: key}.send(t.Context(), p.api)
				return err == nil && a.status == status
			})
		}
	}
	act(429, "ban", "bob", "--for=1h", adminListen(f.replicas[0]))
	act(200, "unban", "bob", adminListen(f.replicas[1]))
	load.stop()
}
