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
	return &page{form: form{body: strconv.AppendInt(nil, int64(c.written), 10)}}, nil
}

var firstPage, otherPage = pageKey{query: store.ListQuery{Limit: 20}}, pageKey{query: store.ListQuery{Limit: 21}}

func shown(t *testing.T, p *page, err error) int {
	t.Helper()
	must(t, err)
	n, err := strconv.Atoi(string(p.body))
	must(t, err)
	return n
}

// Many readers and writers, with a reader that is slow between all of its steps: no
// request gets a page from before a write that was acknowledged when it began.
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
	var acknowledged atomic.Int64
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 2000 {
				least := int(acknowledged.Load())
				p, err := pages.get(t.Context(), pageKey{pet: rand.Int64N(3)}, slow)
				if err != nil {
					continue
				}
				if got, _ := strconv.Atoi(string(p.body)); got < least {
					t.Errorf("a page shows %d writes, want the %d that were acknowledged before", got, least)
					return
				}
			}
		})
	}
	wg.Go(func() {
		for range 500 {
			n := int64(db.write())
			acknowledged.Store(n)
			for range rand.IntN(20) {
				runtime.Gosched()
			}
		}
	})
	wg.Wait()
}

func TestPageIsKeptUntilAWrite(t *testing.T) {
	t.Parallel()
	db := &counter{}
	pages := newPageCache(db, time.Minute)
	broken := errors.New("broken")
	if _, err := pages.get(t.Context(), firstPage, func(context.Context) (*page, error) { return nil, broken }); err != broken {
		t.Errorf("a page that cannot be read: %v, want the error of the store", err)
	}
	for range 3 {
		for range 3 {
			p, err := pages.get(t.Context(), firstPage, db.read)
			if got := shown(t, p, err); got != db.written {
				t.Errorf("the page shows %d writes, want %d", got, db.written)
			}
		}
		db.write()
	}
	if n := db.reads.Load(); n != 3 {
		t.Errorf("nine requests read the page %d times, want once for each of three versions", n)
	}
	p, err := pages.get(t.Context(), firstPage, func(ctx context.Context) (*page, error) {
		_, _ = pages.get(ctx, firstPage, db.read) // another request reads it meanwhile
		return db.read(ctx)
	})
	if got, now := shown(t, p, err), pages.now(); got != db.written || now.bytes != p.size() {
		t.Errorf("a page that two requests read shows %d writes, and %d bytes are counted for it, want %d and %d", got, now.bytes, db.written, p.size())
	}
	_, err = pages.get(t.Context(), otherPage, func(ctx context.Context) (*page, error) {
		defer db.write() // before the page is kept
		return db.read(ctx)
	})
	if err != nil {
		t.Fatal(err)
	}
	p, err = pages.get(t.Context(), otherPage, db.read)
	if got := shown(t, p, err); got != db.written {
		t.Errorf("after a write while the page was read, it shows %d writes, want %d", got, db.written)
	}
	db.blind = true
	for range 2 {
		p, err := pages.get(t.Context(), firstPage, db.read)
		if got := shown(t, p, err); got != db.written {
			t.Errorf("the page shows %d writes, want %d", got, db.written)
		}
	}
	if n := db.reads.Load(); n != 9 {
		t.Errorf("two requests without a version read the page %d times, want twice", n-7)
	}
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
			must(t, err)
			now, bytes := pages.now(), 0
			if id%512 > 2 { // every page would take long
				continue
			}
			for _, k := range now.pages {
				bytes += k.size()
			}
			if bytes != now.bytes {
				t.Fatalf("%s: the pages have %d bytes, and %d are counted", name, bytes, now.bytes)
			}
			most, kept = max(most, bytes), max(kept, len(now.pages))
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
			must(t, err)
			keeps := cap(page.body)
			if page.gzipped != nil {
				zipped, err := page.gzipped()
				must(t, err)
				keeps += cap(zipped.body)
			}
			if size := page.size(); keeps > size {
				t.Errorf("%d pets with names of %d characters: the bodies keep %d bytes, want at most the size of %d", count, length, keeps, size)
			}
		}
	}
}
