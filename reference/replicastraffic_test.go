package main_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
)

// traffic is clients of servers, and what they have sent and seen.
type traffic struct {
	key string

	mu       sync.Mutex
	servers  []*process
	next     int // of the servers
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
// stop is called: new pets, lists of them, and the deprecated operation. As behind a load
// balancer, each request goes to the next server that is ready, and is sent once. A client
// that finds no server ends.
func startTraffic(t *testing.T, key string, clients int, servers ...*process) *traffic {
	ctx, end := context.WithCancel(t.Context())
	l := &traffic{key: key, pets: map[string]int64{}, servers: slices.Clone(servers), end: end}
	for client := range clients {
		l.clients.Go(func() {
			id := int64(0) // of the pet that this client created last
			for i := 0; ctx.Err() == nil; i++ {
				c, status := call{key: key}, http.StatusOK
				switch {
				case i%3 == 0:
					c.method, c.once, status = http.MethodPost, fmt.Sprint(client, "-", i), http.StatusCreated
				case i%3 == 2 && id != 0:
					c.path = fmt.Sprint("/v1/pets/", id)
				}
				base := l.ready(ctx)
				if base == "" {
					return
				}
				a, err := l.one(c, base, status)
				switch {
				case err != nil || a.status != status:
				case c.once != "":
					id = l.acknowledged(t, c, a)
				case c.path != "":
					l.count(&l.retired)
				}
			}
		})
	}
	t.Cleanup(l.stop)
	return l
}

// send has the clients use other servers.
func (l *traffic) send(servers ...*process) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.servers = slices.Clone(servers)
}

// ready returns the base URL of the next server that is ready, or "" if none is.
func (l *traffic) ready(ctx context.Context) string {
	l.mu.Lock()
	servers, first := l.servers, l.next
	l.next++
	l.mu.Unlock()
	for i := range servers {
		p := servers[(first+i)%len(servers)]
		if a, err := ask(ctx, "GET", p.admin+"/readyz", "", ""); err == nil && a.status == http.StatusOK {
			return p.api
		}
	}
	return ""
}

// one sends one request that should be answered with a status.
func (l *traffic) one(c call, base string, status int) (answer, error) {
	l.count(&l.sent)
	a, err := c.send(context.Background(), base)
	if err == nil && a.status == status {
		l.count(&l.admitted)
		return a, nil
	}
	text := fmt.Sprintf("%d %s", a.status, strings.TrimSpace(string(a.body)))
	if err != nil {
		text = err.Error()
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.failed = append(l.failed, failure{c, text})
	return a, err
}

// acknowledged notes the pet of a response, and returns its ID. A request that is sent again
// must get the same pet.
func (l *traffic) acknowledged(t *testing.T, c call, a answer) int64 {
	var pet struct{ ID int64 }
	if err := json.Unmarshal(a.body, &pet); err != nil {
		t.Errorf("%v in %s", err, a.body)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if before, ok := l.pets[c.once]; ok && before != pet.ID {
		t.Errorf("the same request (%s) is answered with the pets %d and %d", c.once, before, pet.ID)
	}
	l.pets[c.once] = pet.ID
	return pet.ID
}

func (l *traffic) count(n *int64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	*n++
}

// answered returns how many requests were answered as they should be.
func (l *traffic) answered() int64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.admitted
}

// flows waits until a number of further requests were admitted.
func (l *traffic) flows(t *testing.T, n int64) {
	t.Helper()
	before := l.answered()
	eventually(t, "more requests are admitted", func() bool { return l.answered() >= before+n })
}

// stop ends the clients, after the requests that they have begun.
func (l *traffic) stop() {
	l.end()
	l.clients.Wait()
}

// checkStored fails unless a server lists each acknowledged pet. It reads with a key of its
// own, and returns how many pets there are.
func (l *traffic) checkStored(t *testing.T, p *process, reader string) (stored int) {
	t.Helper()
	pets := petIDs(t, p, reader)
	for once, id := range l.pets {
		if !pets[id] {
			t.Errorf("pet %d was acknowledged (%s) and is not there", id, once)
		}
	}
	return len(pets)
}
