package inflight_test

import (
	"context"
	"math/rand/v2"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/middleware/inflight"
)

// Many clients at once: no subject ever exceeds the limit, none is left behind in the
// queue, and nothing counts at the end.
func TestConcurrentRequests(t *testing.T) {
	const limit, subjects, clients, requests = 3, 5, 40, 200
	for name, opts := range map[string]inflight.Options{
		"without queue": {},
		"with queue":    {Queue: 4, Wait: time.Millisecond},
		"long queue":    {Queue: clients, Wait: time.Hour},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l := newLimiter(t, limit, opts)
				var running [subjects]atomic.Int64
				var served, refused atomic.Uint64
				h := l.Middleware(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					n, _ := strconv.Atoi(r.Header.Get("Subject"))
					if now := running[n].Add(1); now > limit {
						t.Errorf("%d requests of a subject at once, want at most %d", now, limit)
					}
					if rand.N(2) == 0 {
						time.Sleep(rand.N(time.Millisecond))
					}
					running[n].Add(-1)
					if rand.N(4) == 0 {
						panic(http.ErrAbortHandler)
					}
				}))
				var wg sync.WaitGroup
				for range clients {
					wg.Go(func() {
						for range requests {
							ctx, cancel := context.Background(), func() {}
							if opts.Wait < time.Hour && rand.N(2) == 0 {
								ctx, cancel = context.WithTimeout(ctx, rand.N(time.Millisecond))
							}
							func() {
								defer func() {
									if recover() != nil {
										served.Add(1)
									}
								}()
								if serve(h, request(strconv.Itoa(rand.N(subjects))).WithContext(ctx)).Code == 200 {
									served.Add(1)
								} else {
									refused.Add(1)
								}
							}()
							cancel()
						}
					})
				}
				wg.Wait()
				if got, want := l.Stats(), (inflight.Stats{Admitted: served.Load(), Refused: refused.Load()}); got != want {
					t.Errorf("at the end: %+v, want %+v", got, want)
				}
				if opts.Wait == time.Hour && refused.Load() > 0 {
					t.Errorf("%d refused in spite of room in the queue", refused.Load())
				}
			})
		})
	}
}
