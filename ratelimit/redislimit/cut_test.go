//go:build unix

package redislimit_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/ratelimit"
)

// However much of a reply a broken connection leaves unread: a request is charged at
// most once, and a caller without an answer has an error.
func TestCutReplies(t *testing.T) {
	const limit = 1 << 30
	s := redistest.Start(t)
	proxy := redistest.StartProxy(t, s.Addr)
	l, direct := throughAndBeside(t, proxy, s)
	failed := 0
	for bytes := range 80 {
		warm(t, l)
		before := used(t, direct, "a", limit)
		proxy.CutAfter(bytes)
		_, err := l.Take(ctx, "a", lasting(limit), 1)
		proxy.CutAfter(-1)
		if err != nil {
			failed++
			if !errors.Is(err, ratelimit.ErrUnavailable) {
				t.Errorf("cut after %d bytes: %v, want an error that wraps ErrUnavailable", bytes, err)
			}
		}
		// The cut can be in the answer to the engine's question about eviction instead.
		if n := used(t, direct, "a", limit) - before; n != 1 && (n != 0 || err == nil) {
			t.Errorf("cut after %d bytes: one request was charged %d times, with the error %v", bytes, n, err)
		}
	}
	if failed < 30 {
		t.Errorf("%d of 80 cuts were in the middle of the reply, want at least 30", failed)
	}
}

// A charge whose answer was lost is sent again, and made once.
func TestCutCharges(t *testing.T) {
	const limit = 1 << 30
	s := redistest.Start(t)
	proxy := redistest.StartProxy(t, s.Addr)
	l, direct := throughAndBeside(t, proxy, s)
	for bytes := range 80 {
		warm(t, l)
		proxy.CutAfter(bytes)
		err := addUsage(l, fmt.Sprint(bytes), "a", lasting(limit), [4]int64{7}, time.Now())
		proxy.CutAfter(-1)
		if err != nil {
			t.Errorf("cut after %d bytes: %v", bytes, err)
		}
	}
	if n := used(t, direct, "a", limit); n != 80*7 {
		t.Errorf("80 charges of 7 units came to %d, want %d", n, 80*7)
	}
	if n := proxy.Cuts(); n < 30 {
		t.Errorf("%d of 80 cuts were in the middle of the reply, want at least 30", n)
	}
}

// The same as for one request, with many callers and several subjects to a batch.
func TestCutBatches(t *testing.T) {
	const limit, callers, each = 1 << 30, 16, 100
	s := redistest.Start(t)
	proxy := redistest.StartProxy(t, s.Addr)
	l, direct := throughAndBeside(t, proxy, s)
	plans := []*ratelimit.Plan{lasting(limit), lasting(limit)}
	var admitted, failed, cuts atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := range each {
				if caller == 0 && i%5 == 0 {
					proxy.CutAfter(i * 3)
					cuts.Add(1)
				}
				d, err := l.Take(ctx, fmt.Sprint(i%3), plans[caller%2], 1)
				switch {
				case err != nil:
					failed.Add(1)
					if !errors.Is(err, ratelimit.ErrUnavailable) {
						t.Errorf("%v does not wrap ErrUnavailable", err)
					}
				case d.Allowed():
					admitted.Add(1)
				default:
					t.Errorf("denied below the limit")
				}
			}
		})
	}
	wg.Wait()
	charged := used(t, direct, "0", limit) + used(t, direct, "1", limit) + used(t, direct, "2", limit)
	t.Logf("%d cuts: %d admitted, %d failed, %d charged", cuts.Load(), admitted.Load(), failed.Load(), charged)
	if charged < admitted.Load() || charged > admitted.Load()+failed.Load() {
		t.Errorf("%d were admitted and %d failed, but %d charged", admitted.Load(), failed.Load(), charged)
	}
	if failed.Load() == 0 {
		t.Error("no cut was noticed")
	}
}
