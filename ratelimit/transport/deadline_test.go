package transport_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/transport"
)

func TestCapsItsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 30", "429 Retry-After: 30", "429 Retry-After: 30")
		got := get(t, newTransport(t, s, transport.Options{MaxWait: time.Minute}), url)
		if !strings.HasSuffix(got, "would wait longer than Options.MaxWait (1m0s)") {
			t.Errorf("the caller gets %q, want a LimitError", got)
		}
		s.expect(t, "0s", "30s", "1m0s")
	})
}

func TestNeverWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newScript("429 Retry-After: 1")
		if got := get(t, newTransport(t, s, transport.Options{MaxWait: -1}), url); !strings.Contains(got, "Options.MaxWait (0s)") {
			t.Errorf("the caller gets %q, want a LimitError", got)
		}
		s.expect(t, "0s")
	})
}

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

// Jitter never makes a request miss its deadline or exceed MaxWait.
func TestJitterKeepsToTheDeadline(t *testing.T) {
	for _, opts := range []transport.Options{{Jitter: time.Hour}, {Jitter: time.Hour, MaxWait: 19 * time.Second}} {
		inBubble(t, fmt.Sprint(opts.MaxWait), func(t *testing.T) {
			s := newScript("429 Retry-After: 17")
			client := &http.Client{Transport: newTransport(t, s, opts)}
			if opts.MaxWait == 0 {
				client.Timeout = 19 * time.Second
			}
			begin := time.Now()
			resp, err := client.Get(url)
			if err != nil || time.Since(begin) > 19*time.Second {
				t.Fatalf("%v after %v, want a response within 19s", err, time.Since(begin))
			}
			resp.Body.Close()
		})
	}
}

func TestJitterKeepsToMaxWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		for range 50 {
			begin := time.Now()
			s := newScript("429 Retry-After: 17", "429 Retry-After: 17")
			rt := newTransport(t, s, transport.Options{Jitter: time.Second, MaxWait: 37 * time.Second})
			if got := get(t, rt, url); got != "200" || time.Since(begin) > 37*time.Second {
				t.Fatalf("%s after %v, want 200 within 37s", got, time.Since(begin))
			}
		}
	})
}

// Clients that are refused again and again spread more and more, up to 30 seconds.
func TestJitterGrows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		longest := make([]time.Duration, 7) // extra time of the n-th wait, over all clients
		var done sync.WaitGroup
		for range 200 {
			n := 0
			rt := newTransport(t, newScript(slices.Repeat([]string{"429 Retry-After: 10"}, 7)...), transport.Options{
				Jitter: time.Second, MaxWait: time.Hour,
				OnWait: func(_ *http.Request, wait time.Duration) {
					mu.Lock()
					defer mu.Unlock()
					longest[n] = max(longest[n], wait-10*time.Second)
					n++
				},
			})
			done.Go(func() { get(t, rt, url) })
		}
		done.Wait()
		// The chance of a failure is 7 * 0.85^200, less than one in 10^12.
		for i, bound := range []time.Duration{1, 2, 4, 8, 16, 30, 30} {
			if bound *= time.Second; longest[i] > bound || longest[i] < bound*85/100 {
				t.Errorf("wait %d: the longest extra time of 200 is %v, want a little less than %v", i+1, longest[i], bound)
			}
		}
	})
}
