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

func TestQueueIsServedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, room := newLimiter(2, inflight.Options{Queue: 5, Wait: time.Minute}), newRoom()
		for i := range 7 {
			r := request("ann")
			r.Header.Set("Number", strconv.Itoa(i))
			go serve(l.Middleware(room), r)
			synctest.Wait()
		}
		want(t, l, 2, 5, 1, 0)
		other := newRoom() // another subject does not wait
		go serve(l.Middleware(other), request("bob"))
		<-other.entered
		close(other.leave)
		synctest.Wait()
		if w := serve(l.Middleware(room), request("ann")); w.Code != 429 {
			t.Errorf("with a full queue: %d, want 429 at once", w.Code)
		}
		for i := range 7 {
			if got := (<-room.entered).Header.Get("Number"); got != strconv.Itoa(i) {
				t.Errorf("request %s runs as number %d", got, i)
			}
			if i > 0 {
				room.leave <- struct{}{}
				synctest.Wait()
			}
		}
		want(t, l, 1, 0, 1, 1)
		close(room.leave)
	})
}

// cancelledAfter returns a function like [context.WithCancel] whose context is cancelled
// after a time, as that of a client which disconnects.
func cancelledAfter(d time.Duration) func(context.Context) (context.Context, context.CancelFunc) {
	return func(ctx context.Context) (context.Context, context.CancelFunc) {
		ctx, cancel := context.WithCancel(ctx)
		time.AfterFunc(d, cancel)
		return ctx, cancel
	}
}

func TestWaitEnds(t *testing.T) {
	for _, test := range []struct {
		name  string
		limit func(context.Context) (context.Context, context.CancelFunc)
		after time.Duration
		code  int
	}{
		{"after Wait", context.WithCancel, 100 * time.Millisecond, 429},
		{"with the context", func(ctx context.Context) (context.Context, context.CancelFunc) {
			return context.WithTimeout(ctx, 30*time.Millisecond)
		}, 30 * time.Millisecond, 429},
		{"with the client", cancelledAfter(30 * time.Millisecond), 30 * time.Millisecond, 499},
		{"with the client after Wait", cancelledAfter(100 * time.Millisecond), 100 * time.Millisecond, 429},
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				l, room := newLimiter(1, inflight.Options{Queue: 2, Wait: 100 * time.Millisecond}), newRoom()
				h := l.Middleware(room)
				go serve(h, request("ann"))
				synctest.Wait()

				ctx, cancel := test.limit(context.Background())
				defer cancel()
				began := time.Now()
				w := serve(h, request("ann").WithContext(ctx))
				if waited := time.Since(began); w.Code != test.code || waited != test.after {
					t.Errorf("answered %d after %v, want %d after %v", w.Code, waited, test.code, test.after)
				}
				want(t, l, 1, 0, 1, 1)

				// The place in the queue is free again, and the next one gets its turn.
				next := make(chan int)
				go func() { next <- serve(h, request("ann")).Code }()
				synctest.Wait()
				want(t, l, 1, 1, 1, 1)
				close(room.leave)
				if got := <-next; got != 200 {
					t.Errorf("the next in the queue: %d, want 200", got)
				}
				want(t, l, 0, 0, 0, 1)
			})
		})
	}
}

// A request that is refused at once is refused, also if its client has disconnected.
func TestRefusedAfterItsClientHasGone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l, room := newLimiter(1, inflight.Options{Queue: 1, Wait: time.Minute}), newRoom()
		defer close(room.leave)
		for range 2 { // one runs, and one waits
			go serve(l.Middleware(room), request("ann"))
		}
		synctest.Wait()
		gone, cancel := context.WithCancel(t.Context())
		cancel()
		if w := serve(l.Middleware(room), request("ann").WithContext(gone)); w.Code != 429 {
			t.Errorf("answered %d, want 429", w.Code)
		}
	})
}

// A higher limit takes effect for those who wait already, in their order.
func TestHigherLimitAdmitsWaiting(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		identify := func(r *http.Request) (inflight.Caller, error) {
			limit, err := strconv.Atoi(r.Header.Get("Limit"))
			return inflight.Caller{Subject: "ann", Limit: limit}, err
		}
		l := must(inflight.New(1, identify, inflight.Options{Queue: 10, Wait: time.Minute}))
		room := newRoom()
		defer close(room.leave)
		for i, step := range []struct{ limit, running, waiting int }{
			{1, 1, 0}, {1, 1, 1}, {1, 1, 2}, {3, 3, 1}, {3, 3, 2}, {6, 6, 0}, {1, 6, 1},
		} {
			r := request("ann")
			r.Header.Set("Limit", strconv.Itoa(step.limit))
			go serve(l.Middleware(room), r)
			synctest.Wait()
			if s := l.Stats(); s.Running != step.running || s.Waiting != step.waiting {
				t.Fatalf("after request %d, with Limit %d: %+v, want %d running, %d waiting",
					i, step.limit, s, step.running, step.waiting)
			}
		}
		// With a lower limit, no request of the queue runs until enough have finished.
		for range 5 {
			room.leave <- struct{}{}
		}
		synctest.Wait()
		want(t, l, 1, 1, 1, 0)
		room.leave <- struct{}{}
		synctest.Wait()
		want(t, l, 1, 0, 1, 0)
	})
}

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
				l := newLimiter(limit, opts)
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
