package api

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// The bounds of what a pageCache keeps. A page of 100 pets has about 7 KiB, and one of
// pets with the longest names 150 KiB.
const (
	maxKeptBytes = 16 << 20
	maxKeptPages = 4096
)

// A pageCache keeps pages until the store may have changed. A request that begins after this
// server has acknowledged a write does not get a page from before it. After a write of another
// process, it may get one for 10 milliseconds.
//
// It relies on [store.PetsVersioner]: a page is kept under the version that the store had
// before the page was read, and served while the store has the same version. So a page may
// be newer than its version, but not older.
//
// A pageCache is safe for concurrent use.
type pageCache struct {
	timeout time.Duration                    // of a read
	version func() (version uint64, ok bool) // nil: nothing is kept
	current atomic.Pointer[keptPages]
}

// A pageKey names a page: that of a query, or one pet.
type pageKey struct {
	query store.ListQuery
	pet   int64 // 0: the page of the query
}

// keptPages are the pages of one version.
type keptPages struct {
	version uint64

	mu    sync.RWMutex
	pages map[pageKey]*page
	bytes int // of the pages
}

func newPageCache(pets store.Pets, timeout time.Duration) *pageCache {
	c := &pageCache{timeout: timeout}
	if v, ok := pets.(store.PetsVersioner); ok {
		c.version = v.PetsVersion
	}
	return c
}

// get returns the page that is kept, or else what read returns when it is called with the
// timeout.
func (c *pageCache) get(ctx context.Context, key pageKey, read func(context.Context) (*page, error)) (*page, error) {
	pages := c.now()
	if pages != nil {
		if p := pages.of(key); p != nil {
			return p, nil // without a context, which would cost more than the rest
		}
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	p, err := read(ctx)
	if err == nil && pages != nil {
		pages.keep(key, p)
	}
	return p, err
}

// now returns the pages of the current version, or nil if there is no version.
func (c *pageCache) now() *keptPages {
	if c.version == nil {
		return nil
	}
	version, ok := c.version()
	if !ok {
		return nil
	}
	for {
		current := c.current.Load()
		if current != nil && current.version == version {
			return current
		}
		next := &keptPages{version: version, pages: make(map[pageKey]*page)}
		if c.current.CompareAndSwap(current, next) {
			return next
		}
	}
}

// of returns the page of a key, or nil.
func (p *keptPages) of(key pageKey) *page {
	p.mu.RLock()
	defer p.mu.RUnlock()
	return p.pages[key]
}

// keep keeps a page that was read, unless another request has kept it already, and forgets
// pages if there are too many. Any will do, since popular ones are read again immediately.
func (p *keptPages) keep(key pageKey, read *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pages[key] != nil {
		return
	}
	p.pages[key] = read
	p.bytes += read.size()
	for other, old := range p.pages {
		if p.bytes <= maxKeptBytes && len(p.pages) <= maxKeptPages {
			return
		}
		delete(p.pages, other)
		p.bytes -= old.size()
	}
}
