package api

import (
	"context"
	"errors"
	"math/rand/v2"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/reference/internal/store"
)

// counter is a store whose only page shows how often it was written to.
type counter struct {
	store.Pets
	mu      sync.Mutex
	written int
	blind   bool // PetsVersion cannot tell
}

func (c *counter) PetsVersion() (uint64, bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.blind {
		return 0, false
	}
	return uint64(c.written), true
}

// write writes, after which PetsVersion now and then cannot tell.
func (c *counter) write() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.written++
	c.blind = rand.IntN(4) == 0
	return c.written
}

func (c *counter) read(context.Context) (*page, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return &page{form: form{body: strconv.AppendInt(nil, int64(c.written), 10)}}, nil
}

// Many readers and writers, with a reader that is slow between all of its steps: no
// request gets a page from before a write that was acknowledged when it began, and the bytes
// of the pages are counted.
func TestPageCacheIsExact(t *testing.T) {
	t.Parallel()
	db := &counter{}
	pages := newPageCache(db, time.Minute)
	slow := func(ctx context.Context) (*page, error) {
		for range rand.IntN(4) {
			runtime.Gosched()
		}
		p, err := db.read(ctx)
		for range rand.IntN(4) {
			runtime.Gosched()
		}
		if rand.IntN(20) == 0 {
			return nil, errors.New("some reads fail")
		}
		return p, err
	}
	const writes = 5000
	var acknowledged atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for ; acknowledged.Load() < writes; runtime.Gosched() {
				least := int(acknowledged.Load())
				p, err := pages.get(t.Context(), pageKey{pet: rand.Int64N(3)}, slow)
				if err != nil {
					continue
				}
				if got, _ := strconv.Atoi(string(p.body)); got < least {
					t.Errorf("a page shows %d writes, want the %d that were acknowledged before", got, least)
					return
				}
				if now := pages.now(); now != nil {
					checkBytes(t, now)
				}
			}
		})
	}
	wg.Go(func() {
		for range writes {
			n := int64(db.write())
			acknowledged.Store(n)
			for range rand.IntN(20) {
				runtime.Gosched()
			}
		}
	})
	wg.Wait()
}

// checkBytes checks that the bytes of the pages that are kept are counted, and returns them.
func checkBytes(t *testing.T, kept *keptPages) (bytes int) {
	t.Helper()
	kept.mu.Lock()
	defer kept.mu.Unlock()
	for _, p := range kept.pages {
		bytes += p.size()
	}
	if bytes != kept.bytes {
		t.Errorf("the pages have %d bytes, and %d are counted", bytes, kept.bytes)
	}
	return bytes
}

func TestPageCacheIsBounded(t *testing.T) {
	t.Parallel()
	for name, body := range map[string][]byte{
		"large pages":       make([]byte, 150<<10),
		"a page of its own": make([]byte, 3*maxKeptBytes/2),
		"small pages":       make([]byte, 100),
	} {
		pages := newPageCache(&counter{}, time.Minute)
		var most, kept int
		for id := range int64(2 * maxKeptPages) {
			big := &page{form: form{body: body}}
			_, err := pages.get(t.Context(), pageKey{pet: id}, func(context.Context) (*page, error) { return big, nil })
			testcheck.NoError(t, err)
			if id%512 > 2 { // every page would take long
				continue
			}
			now := pages.now()
			most, kept = max(most, checkBytes(t, now)), max(kept, len(now.pages))
		}
		if most > maxKeptBytes || kept > maxKeptPages {
			t.Errorf("%s: up to %d pages of %d bytes are kept, want at most %d of %d", name, kept, most, maxKeptPages, maxKeptBytes)
		}
	}
}

// The cache bounds its memory by the sizes of its pages, so no page may have a larger one,
// even if its names can hardly be compressed.
func TestSizeOfAPage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for _, count := range []int{0, 1, 20, 24, 60, 100} {
		for _, length := range []int{1, 30, 100, store.MaxText} {
			pets := make([]store.Pet, count)
			for i := range pets {
				name := make([]rune, length)
				for j := range name {
					name[j] = '\U00020000' + random.Int32N(40_000) // four bytes each
				}
				pets[i] = store.Pet{ID: random.Int64(), Name: string(name), CategoryID: random.Int64(), Status: store.Available}
			}
			page, err := newListPage(store.ListQuery{Limit: 100}, pets, true)
			testcheck.NoError(t, err)
			keeps := cap(page.body)
			if page.gzipped != nil {
				zipped, err := page.gzipped()
				testcheck.NoError(t, err)
				keeps += cap(zipped.body)
			}
			if size := page.size(); keeps > size {
				t.Errorf("%d pets with names of %d characters: the bodies keep %d bytes, want at most the size of %d", count, length, keeps, size)
			}
		}
	}
}
