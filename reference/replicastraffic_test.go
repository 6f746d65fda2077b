//go:build unix

package main_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// traffic is clients of a fleet, and what they have sent and seen.
type traffic struct {
	key string

	mu       sync.Mutex
	sent     int64
	admitted int64
	retired  int64            // of them, the requests of the deprecated operation
	pets     map[string]int64 // that were acknowledged, by idempotency key
	failed   []failure

	clients sync.WaitGroup
	end     context.CancelFunc
}

// A failure is a request that was not answered, or answered with another status than it
// should have been.
type failure struct {
	call
	text string
}

// startTraffic starts clients that send one request after the other, with a key, until
// stop is called: new pets, lists of them, and the deprecated operation.
func startTraffic(t *testing.T, base, key string, clients int) *traffic {
	ctx, end := context.WithCancel(t.Context())
	l := &traffic{key: key, pets: map[string]int64{}, end: end}
	for client := range clients {
		l.clients.Go(func() {
			id := int64(0) // of the pet that this client created last
			for i := 0; ctx.Err() == nil; i++ {
				switch {
				case i%3 == 0:
					c := call{method: http.MethodPost, key: key, once: fmt.Sprint(client, "-", i)}
					if a, ok := l.one(t, c, base, http.StatusCreated); ok {
						id = l.acknowledged(t, c, a)
					}
				case i%3 == 1 || id == 0:
					l.one(t, call{key: key}, base, http.StatusOK)
				default:
					if _, ok := l.one(t, call{path: fmt.Sprint("/v1/pets/", id), key: key}, base, http.StatusOK); ok {
						l.count(&l.retired)
					}
				}
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

// one sends one request, and reports whether it was answered with a status.
func (l *traffic) one(t *testing.T, c call, base string, status int) (answer, bool) {
	l.count(&l.sent)
	a, err := c.send(t.Context(), base)
	if err == nil && a.status == status {
		l.count(&l.admitted)
		return a, true
	}
	text := fmt.Sprintf("%d %s", a.status, strings.TrimSpace(string(a.body)))
	if err != nil {
		text = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, failure{c, text})
	return a, false
}

// acknowledged notes the pet of a response, and returns its ID.
func (l *traffic) acknowledged(t *testing.T, c call, a answer) int64 {
	id, err := a.petID()
	if err != nil {
		t.Errorf("%v in %s", err, a.body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pets[c.once] = id
	return id
}

func (l *traffic) count(n *int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
}

// flows waits until a number of further requests were admitted.
func (l *traffic) flows(t *testing.T, n int64) {
	t.Helper()
	admitted := func() int64 {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.admitted
	}
	before := admitted()
	eventually(t, "more requests are admitted", func() bool { return admitted() >= before+n })
}

// stop ends the clients, after the requests that they have begun.
func (l *traffic) stop() {
	l.end()
	l.clients.Wait()
}

// checkStored fails unless each replica lists each acknowledged pet, and no others except
// those that were there before. It reads with a key of its own.
func (l *traffic) checkStored(t *testing.T, f *fleet, reader string, before int) {
	t.Helper()
	for i, p := range f.replicas {
		stored := petIDs(t, p, reader)
		for once, id := range l.pets {
			if !stored[id] {
				t.Errorf("replica %d does not have pet %d, which was acknowledged (%s)", i+1, id, once)
			}
		}
		if len(stored)-before != len(l.pets) {
			t.Errorf("replica %d has %d pets, want %d: one for each that was acknowledged", i+1, len(stored)-before, len(l.pets))
		}
	}
}
