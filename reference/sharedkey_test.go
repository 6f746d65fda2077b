package main_test

import (
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/alicebob/miniredis/v2"
)

// twoServers starts two servers on one database and one Redis.
func twoServers(t *testing.T, dir string) []*process {
	t.Helper()
	redis := "--redis=redis://" + miniredis.RunT(t).Addr()
	return []*process{serve(t, dir, redis), serve(t, dir, redis)}
}

// Two servers together admit exactly what a key with limits of its own may send, and
// charge its owner as much.
func TestServersShareTheLimitsOfAKey(t *testing.T) {
	dir := t.TempDir()
	create := []string{"keys", "create", "--name=test", "--owner=ann", "--plan=enterprise", "--quota=100/8784h"}
	limited, other := petstore(t, dir, append(create, "--limit=30/8784h")...), petstore(t, dir, create...)
	servers := twoServers(t, dir)
	var admitted atomic.Int64
	var wg sync.WaitGroup
	for client := range 8 {
		wg.Go(func() {
			for i := range 15 {
				a, err := ask(t.Context(), "GET", servers[(client+i)%2].api+"/v1/pets", limited, "")
				switch {
				case err != nil:
					t.Error(err)
				case a.status == 200:
					admitted.Add(1)
				case a.status != 429:
					t.Errorf("answered with %d: %s", a.status, a.body)
				}
			}
		})
	}
	wg.Wait()
	if got := admitted.Load(); got != 30 {
		t.Errorf("%d requests of the key were admitted, want 30", got)
	}
	for _, p := range servers {
		if got := used(t, p, other); got != 30 {
			t.Errorf("%d requests are charged to the owner, want 30", got)
		}
	}
}

// The same request to both servers at once creates one pet.
func TestServersShareIdempotencyKeys(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	key := roomyKey(t, dir, "ann")
	servers := twoServers(t, dir)
	const pets, each = 10, 8
	var wg sync.WaitGroup
	for i := range pets * each {
		wg.Go(func() {
			if err := postOnce(t, servers[i%2], key, fmt.Sprint(i/each)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if got := len(petIDs(t, servers[0], key)); got != pets {
		t.Errorf("there are %d pets, want %d", got, pets)
	}
}
