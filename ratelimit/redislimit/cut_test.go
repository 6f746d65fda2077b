//go:build unix

package redislimit_test

import (
	"errors"
	"fmt"
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
