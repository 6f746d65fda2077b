//go:build unix

package main_test

import (
	"encoding/json"
	"net/http"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/admin"
)

// strictly bans at the first request too many.
const strictly = "penalty: {strikes: 1, grace: 0s, ban: 1h, growth: 1, max: 1h, forgive: 1h}\n"

// bansOf returns the bans that a replica lists.
func (f *fleet) bansOf(t *testing.T, p *process) (bans []admin.Ban) {
	t.Helper()
	list := f.petstore(t, "bans", "list", "--json", adminListen(p))
	if err := json.Unmarshal([]byte(list), &bans); err != nil {
		t.Fatalf("%v in %s", err, list)
	}
	return bans
}

// However many replicas deny a client at once, it gets one ban, and each of them knows it.
func TestABanHoldsOnEachReplica(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, "petstore.db", "anonymous: [10/8784h]\n"+strictly)
	key := f.key(t, "ann", "10/8784h")
	const network = "198.51.100.7"
	for _, c := range []*crowd{
		{call: call{key: key, network: "192.0.2.1"}, charged: 200},
		{call: call{network: network}, charged: 401},
	} {
		c.run(t, f.balancer.url, 8, 10)
	}
	for _, p := range f.replicas {
		if bans := f.bansOf(t, p); len(bans) != 2 || bans[0].Level != 1 || bans[1].Level != 1 {
			t.Errorf("the bans are %+v, want one for the owner and one for the network, each the first", bans)
		}
		if a := (call{key: key}).mustSend(t, 429, p.api); a.code() != "api_key_banned" {
			t.Errorf("a replica answers an owner that is banned with %s", a.code())
		}
		if a := (call{network: network}).mustSend(t, 429, p.api); a.code() != "client_banned" {
			t.Errorf("a replica answers a network that is banned with %s", a.code())
		}
	}
}

// What one replica bans or unbans for an operator is banned or unbanned on all at once.
func TestBansByHandHoldOnEachReplica(t *testing.T) {
	t.Parallel()
	f := newFleet(t, 3, "petstore.db", "")
	key := f.roomyKey(t, "ann")
	const network = "198.51.100.7"
	check := func(owned, anonymous int) {
		t.Helper()
		for _, p := range f.replicas {
			call{key: key, network: "192.0.2.1"}.mustSend(t, owned, p.api)
			call{network: network}.mustSend(t, anonymous, p.api)
		}
	}
	check(http.StatusOK, http.StatusUnauthorized)
	for i := range f.replicas {
		first, second := f.replicas[i], f.replicas[(i+1)%3]
		f.petstore(t, "bans", "ban", "ann", "--for=1h", adminListen(first))
		f.petstore(t, "bans", "ban", "--network="+network, "--for=1h", adminListen(first))
		check(http.StatusTooManyRequests, http.StatusTooManyRequests)
		f.petstore(t, "bans", "unban", "ann", adminListen(second))
		check(http.StatusOK, http.StatusTooManyRequests)
		f.petstore(t, "bans", "unban", "--network="+network, adminListen(second))
		check(http.StatusOK, http.StatusUnauthorized)
	}
}

// Replicas that start together on an empty database make one key.
func TestReplicasThatStartTogether(t *testing.T) {
	onEachDatabase(t, func(t *testing.T, database string) {
		f := newFleet(t, 0, database, "")
		var wg sync.WaitGroup
		var mu sync.Mutex
		var notices []string
		for range 3 {
			wg.Go(func() {
				p := f.launch(t)
				if p == nil {
					return
				}
				mu.Lock()
				defer mu.Unlock()
				f.replicas = append(f.replicas, p)
				if p.notice != "" {
					notices = append(notices, p.notice)
				}
			})
		}
		wg.Wait()
		if len(f.replicas) != 3 || len(notices) != 1 {
			t.Fatalf("%d replicas started and %d showed a key, want 3 and 1", len(f.replicas), len(notices))
		}
		first, err := readFirstKey(notices[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, p := range f.replicas {
			call{key: first.key}.mustSend(t, 200, p.api)
		}
	})
}
