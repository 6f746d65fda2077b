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

// A pageCache keeps pages until the store may have changed. It is exact within a server: a
// request that begins after this server has acknowledged a write does not get a page from
// before it. After a write of another process it may get one for 10 milliseconds. Requests
// for a page that is being read wait for it instead of reading it too.
//
// It relies on [store.PetsVersioner]: a page is kept under the version that the store had
// before the page was read, and served while the store has the same version, so that
// nothing is known to be written meanwhile. A page of a request that began under that
// version may be newer than the version, never older.
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
	pages map[pageKey]*keptPage
	bytes int // of the pages that were read
}

// A keptPage is a page that is being read, or was.
type keptPage struct {
	page atomic.Pointer[page] // nil: it is being read, or could not be read
	done chan struct{}        // closed when it was read
}

func newPageCache(pets store.Pets, timeout time.Duration) *pageCache {
	c := &pageCache{timeout: timeout}
	if v, ok := pets.(store.PetsVersioner); ok {
		c.version = v.PetsVersion
	}
	return c
}

// kept returns a page that is kept, or nil.
func (c *pageCache) kept(key pageKey) *page {
	pages := c.now()
	if pages == nil {
		return nil
	}
	pages.mu.RLock()
	k := pages.pages[key]
	pages.mu.RUnlock()
	if k == nil {
		return nil
	}
	return k.page.Load()
}

// get returns a page that is kept, or else what read returns, which gets a context with the
// timeout. If another call reads the page, get waits for it, at most as long.
func (c *pageCache) get(ctx context.Context, key pageKey, read func(context.Context) (*page, error)) (*page, error) {
	if p := c.kept(key); p != nil {
		return p, nil // without a context, which would cost more than the rest
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	pages := c.now()
	if pages == nil {
		return read(ctx)
	}
	k, first := pages.join(key)
	if first {
		return pages.read(ctx, key, k, read)
	}
	select {
	case <-k.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	if p := k.page.Load(); p != nil {
		return p, nil
	}
	// The error of the other request can be that of its client, which has disconnected.
	return read(ctx)
}

// now returns the pages of the present version, or nil if there is no version.
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
		next := &keptPages{version: version, pages: make(map[pageKey]*keptPage)}
		if c.current.CompareAndSwap(current, next) {
			return next
		}
	}
}

// join returns the page of a key. If there is none, first is true, and the caller must
// read it.
func (p *keptPages) join(key pageKey) (k *keptPage, first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if k := p.pages[key]; k != nil {
		return k, false
	}
	k = &keptPage{done: make(chan struct{})}
	p.pages[key] = k
	return k, true
}

// read reads the page k of a key, for all requests that wait for it. A page that could
// not be read is not kept.
func (p *keptPages) read(ctx context.Context, key pageKey, k *keptPage, read func(context.Context) (*page, error)) (done *page, err error) {
	defer func() { // also after a panic
		p.finish(key, k, done)
		close(k.done)
	}()
	return read(ctx)
}

// finish keeps a page that was read, or nil, and forgets other pages if there are too
// many: any, since those that are asked for often come back at once.
func (p *keptPages) finish(key pageKey, k *keptPage, done *page) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if done == nil {
		if p.pages[key] == k {
			delete(p.pages, key)
		}
		return
	}
	k.page.Store(done)
	if p.pages[key] != k {
		return // forgotten meanwhile
	}
	p.bytes += done.size()
	for other, old := range p.pages {
		if p.bytes <= maxKeptBytes && len(p.pages) <= maxKeptPages {
			return
		}
		delete(p.pages, other)
		if forgotten := old.page.Load(); forgotten != nil {
			p.bytes -= forgotten.size()
		}
	}
}
