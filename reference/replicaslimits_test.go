//go:build unix

package main_test

import (
	"fmt"
	"net/http"
	"sync"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

// A crowd is clients that send the same request at once.
type crowd struct {
	call
	charged int // the status of a request that is charged: 200, or 401 without a key

	mu       sync.Mutex
	admitted int
	denied   int
	rose     []string // where what is left was more than before
}

// run sends requests of several clients.
func (c *crowd) run(t *testing.T, base string, clients, each int) {
	var wg sync.WaitGroup
	for range clients {
		wg.Go(func() {
			before := int64(-1)
			for range each {
				before = c.one(t, base, before)
			}
		})
	}
	wg.Wait()
}

func (c *crowd) one(t *testing.T, base string, before int64) (remaining int64) {
	a, err := c.send(t.Context(), base)
	if err != nil {
		t.Error(err)
		return before
	}
	remaining, err = a.remaining()
	if err != nil {
		t.Error(err)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if before >= 0 && remaining > before {
		c.rose = append(c.rose, fmt.Sprintf("from %d to %d", before, remaining))
	}
	switch a.status {
	case c.charged:
		c.admitted++
	case http.StatusTooManyRequests:
		c.denied++
	default:
		t.Errorf("answered with %d: %s", a.status, a.body)
	}
	return remaining
}

// testLimit sends more requests than the quotas of an owner with two keys, and of a key
// with a limit of its own, allow.
func (f *fleet) testLimit(t *testing.T) {
	f.undisturbed(t, func(owner string) func() {
		one, other := f.key(t, owner, "90/8784h"), f.key(t, owner, "90/8784h")
		limited := f.key(t, "limited "+owner, "90/8784h", "--limit=25/8784h")
		crowds := []*crowd{
			{call: call{key: one}, charged: 200},
			{call: call{key: other}, charged: 200},
			{call: call{key: limited}, charged: 200},
		}
		var wg sync.WaitGroup
		for _, c := range crowds {
			wg.Go(func() { c.run(t, f.balancer.url, 6, 12) })
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
				f.allAnswer(t, c.call, http.StatusTooManyRequests)
			}
			f.checkUsed(t, limited, 25)
		}
	})
}

// Windows begin and end at the same instant on all replicas: that of the clock of Redis.
func TestReplicasAdmitTheLimitInEachWindow(t *testing.T) {
	testenv.Long(t, "sends requests through several windows")
	t.Parallel()
	f := newFleet(t, 3, "petstore.db", "penalty: {strikes: 0}\n")
	const limit, windows = 15, 3
	f.undisturbed(t, func(owner string) func() {
		key := f.key(t, owner, "15/second")
		var mu sync.Mutex
		admitted := map[string]int{} // by the end of the window
		ended := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return len(admitted) > windows
		}
		var wg sync.WaitGroup
		for range 6 {
			wg.Go(func() {
				for !ended() {
					a, err := call{key: key}.send(t.Context(), f.balancer.url)
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					if a.status == http.StatusOK {
						admitted[a.header.Get("X-RateLimit-Reset")]++
					}
					mu.Unlock()
				}
			})
		}
		wg.Wait()
		return func() {
			for end, n := range admitted {
				if n > limit {
					t.Errorf("%d requests were admitted in the window that ends at %s, want %d at most", n, end, limit)
				}
			}
		}
	})
}
