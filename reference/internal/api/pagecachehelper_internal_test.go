package api

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// counter is a store whose only page shows how often it was written to.
type counter struct {
	store.Pets
	mu      sync.Mutex
	written int
	reads   atomic.Int64
	blind   bool // PetsVersion cannot tell
}

func (c *counter) PetsVersion() (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return uint64(c.written), !c.blind
}

func (c *counter) write() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written++
	return c.written
}

func (c *counter) read(context.Context) (*page, error) {
	c.reads.Add(1)
	c.mu.Lock()
	defer c.mu.Unlock()
	return &page{body: strconv.AppendInt(nil, int64(c.written), 10)}, nil
}

var firstPage = pageKey{query: store.ListQuery{Limit: 20}}

func shown(t *testing.T, p *page, err error) int {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	n, err := strconv.Atoi(string(p.body))
	if err != nil {
		t.Fatal(err)
	}
	return n
}
