package transport_test

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/transport"
)

func TestStopsOnContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17")
		rt := newTransport(t, s, transport.Options{})
		ctx, cancel := context.WithCancelCause(t.Context())
		reason := errors.New("shutting down")
		time.AfterFunc(5*time.Second, func() { cancel(reason) })
		begin := time.Now()
		r, _ := http.NewRequestWithContext(ctx, "GET", url, nil)
		if _, err := rt.RoundTrip(r); !errors.Is(err, reason) || time.Since(begin) != 5*time.Second {
			t.Errorf("the error is %v after %v, want the cause of the context after 5s", err, time.Since(begin))
		}
	})
}

func TestFailsAtOnceIfTheDeadlineIsTooEarly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 17")
		client := &http.Client{Transport: newTransport(t, s, transport.Options{}), Timeout: 17 * time.Second}
		begin := time.Now()
		_, err := client.Get(url)
		if limitOf(t, err); !errors.Is(err, context.DeadlineExceeded) || !time.Now().Equal(begin) {
			t.Errorf("the error is %v after %v, want DeadlineExceeded at once", err, time.Since(begin))
		}
	})
}

// Clients that are refused again and again spread more and more, up to 30 seconds. The
// random time makes no request exceed MaxWait.
func TestJitterGrows(t *testing.T) {
	for maxWait, bounds := range map[time.Duration][]time.Duration{
		time.Hour: {1, 2, 4, 8, 16, 30, 30}, 22 * time.Second: {1, 1},
	} {
		inBubble(t, maxWait.String(), func(t *testing.T) {
			var mu sync.Mutex
			longest := make([]time.Duration, len(bounds)) // extra time of the n-th wait, over all clients
			var done sync.WaitGroup
			for range 200 {
				n, total := 0, time.Duration(0)
				rt, err := transport.New(transport.Options{
					Base: newScript(slices.Repeat([]string{"429 Retry-After: 10"}, len(bounds))...), MaxWait: maxWait,
					OnWait: func(_ *http.Request, wait time.Duration) {
						mu.Lock()
						defer mu.Unlock()
						longest[n] = max(longest[n], wait-10*time.Second)
						if n, total = n+1, total+wait; total > maxWait {
							t.Errorf("a request waits for %v", total)
						}
					},
				})
				must(t, err)
				done.Go(func() { get(t, rt, url) })
			}
			done.Wait()
			// The chance of a failure is 7 * 0.85^200, less than one in 10^12.
			for i, bound := range bounds {
				if bound *= time.Second; longest[i] > 2*bound || maxWait == time.Hour && (longest[i] > bound || longest[i] < bound*85/100) {
					t.Errorf("wait %d: the longest extra time of 200 is %v, want a little less than %v", i+1, longest[i], bound)
				}
			}
		})
	}
}
