//go:build unix

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// otherProcesses is how long a SQLite store may keep a page that another process has made
// stale.
const otherProcesses = 10 * time.Millisecond

// A pet that one replica has acknowledged is in the answers of all others from then on,
// also if a client or a replica has an answer from before.
func (f *fleet) testPets(t *testing.T) {
	key := f.roomyKey(t, "ann")
	// Answers that are made while a pet is stored must not be used after it.
	ctx, end := context.WithCancel(t.Context())
	var readers sync.WaitGroup
	defer readers.Wait()
	defer end()
	for _, p := range f.replicas {
		readers.Go(func() {
			for ctx.Err() == nil {
				_, _ = call{path: "/v1/pets?limit=100", key: key}.send(ctx, p.api)
				time.Sleep(time.Millisecond) // leaves the cores to the others
			}
		})
	}
	before := len(petIDs(t, f.replicas[0], key))
	tags := map[*process]string{}
	const pets = 15
	for i := range pets {
		created := call{method: http.MethodPost, key: key}.mustSend(t, 201, f.replicas[i%3].api)
		id, err := created.petID()
		must(t, err)
		if f.database == "petstore.db" {
			time.Sleep(2 * otherProcesses)
		}
		for _, other := range f.replicas {
			list := call{path: "/v1/pets?limit=100", key: key, match: tags[other]}.mustSend(t, 200, other.api)
			var listed []struct{ ID int64 }
			list.into(t, &listed)
			if n := len(listed) - before; n != i+1 || listed[before+i].ID != id {
				t.Fatalf("a replica lists %d pets after %d were created: %s", n, i+1, list.body)
			}
			call{path: fmt.Sprint("/v1/pets/", id), key: key}.mustSend(t, 200, other.api)
			tags[other] = list.header.Get("ETag")
			call{path: "/v1/pets?limit=100", key: key, match: tags[other]}.mustSend(t, 304, other.api)
		}
	}
}

// Requests that are the same are one pet, however many replicas get them at once.
func (f *fleet) testIdempotencyKeys(t *testing.T) {
	key := f.roomyKey(t, "ann")
	before := len(petIDs(t, f.replicas[0], key))
	const pets, each = 8, 6
	var mu sync.Mutex
	ids := map[string]map[int64]bool{}
	var wg sync.WaitGroup
	for i := range pets * each {
		c := call{method: http.MethodPost, key: key, once: fmt.Sprint(i / each)}
		wg.Go(func() {
			a, err := c.send(t.Context(), f.replicas[i%3].api)
			if err != nil || a.status != 201 {
				t.Errorf("the same request to several replicas: %d %s, %v; want 201", a.status, a.body, err)
				return
			}
			id, err := a.petID()
			if err != nil {
				t.Error(err)
			}
			mu.Lock()
			defer mu.Unlock()
			if ids[c.once] == nil {
				ids[c.once] = map[int64]bool{}
			}
			ids[c.once][id] = true
		})
	}
	wg.Wait()
	for once, got := range ids {
		if len(got) != 1 {
			t.Errorf("the same request (%s) was answered with %d pets", once, len(got))
		}
	}
	if got := len(petIDs(t, f.replicas[0], key)) - before; got != pets {
		t.Errorf("there are %d pets, want %d", got, pets)
	}
}

// Of requests that add a pet if the list is still the same, one does, however many replicas
// get them at once.
func (f *fleet) testConditions(t *testing.T) {
	key := f.roomyKey(t, "ann")
	for round := range 5 {
		tag := call{key: key}.mustSend(t, 200, f.replicas[0].api).header.Get("ETag")
		var created atomic.Int64
		var wg sync.WaitGroup
		for i := range 9 {
			wg.Go(func() {
				a, err := call{method: http.MethodPost, key: key, ifMatch: tag}.send(t.Context(), f.replicas[i%3].api)
				switch {
				case err == nil && a.status == http.StatusCreated:
					created.Add(1)
				case err != nil || a.status != http.StatusPreconditionFailed:
					t.Errorf("a request with If-Match: %d %s, %v; want 201 or 412", a.status, a.body, err)
				}
			})
		}
		wg.Wait()
		if got := created.Load(); got != 1 {
			t.Errorf("round %d: %d of the requests with the same If-Match added a pet, want 1", round+1, got)
		}
	}
}
