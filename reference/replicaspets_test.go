//go:build unix

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"sync"
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
