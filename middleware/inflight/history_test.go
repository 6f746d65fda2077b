package inflight_test

import (
	"context"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/inflight"
)

// A visit is one request of a history, with what is wanted of it and what became of it.
type visit struct {
	caller inflight.Caller
	began  time.Time
	until  time.Time // when it stops waiting
	gone   bool      // its client has gone then

	want, got inflight.Decision // got is zero until it is decided
	inside    bool              // its handler runs, or has run
	leave     chan struct{}     // lets its handler return
	code      int               // of its response
	body      string            // which Options.Errors writes
	wantCode  int               // 0 until it ends
	wantBody  string
}

// history plays requests against a Limiter, one after the other, and says what must become of
// them: a subject has a limit, requests that run, and requests that wait in their order.
type history struct {
	*testing.T
	limit   int // given to New or NewProcess
	process bool
	opts    inflight.Options
	limiter *inflight.Limiter

	mu               sync.Mutex     // for what the goroutines of requests write
	limits           map[string]int // of the latest request of each subject
	running, waiting map[string][]*visit
	all              []*visit
	stats            inflight.Stats // Admitted and Refused
}

// writer writes errors in a form of its own.
var writer = &apierror.Responder{
	Logger: slog.New(slog.DiscardHandler),
	Write: func(w http.ResponseWriter, _ *http.Request, e *apierror.Error) {
		w.WriteHeader(e.Status)
		fmt.Fprint(w, e.Code, " ", e.Args)
	},
}

type visitKey struct{}

func visitOf(r *http.Request) *visit { return r.Context().Value(visitKey{}).(*visit) }

func TestHistories(t *testing.T) {
	for seed := range race.Fewer(200) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(uint64(seed), 1))
			h := newHistory(t, random)
			for i := 0; i < 100 && !t.Failed(); i++ {
				time.Sleep(time.Duration(random.IntN(4)) * 10 * time.Millisecond)
				synctest.Wait()
				h.expire()
				if running := slices.Concat(h.running["ann"], h.running["bob"], h.running[""]); random.IntN(3) == 0 && len(running) > 0 {
					h.finish(running[random.IntN(len(running))])
				} else {
					h.send(random)
				}
				h.compare()
			}
			for _, subject := range []string{"ann", "bob", ""} {
				for len(h.running[subject]) > 0 {
					h.finish(h.running[subject][0])
				}
			}
			if h.compare(); t.Failed() {
				t.Fatalf("seed %d: limit %d, process %t, queue %d", seed, h.limit, h.process, h.opts.Queue)
			}
		})
	}
}

func newHistory(t *testing.T, random *rand.Rand) *history {
	h := &history{
		T: t, limit: 1 + random.IntN(3), process: random.IntN(4) == 0,
		limits: map[string]int{}, running: map[string][]*visit{}, waiting: map[string][]*visit{},
	}
	h.opts.Observe = func(r *http.Request, c inflight.Caller, d inflight.Decision) {
		v := visitOf(r)
		h.mu.Lock()
		defer h.mu.Unlock()
		if v.got != (inflight.Decision{}) || c != v.caller {
			t.Errorf("observed %+v of %+v, want it once of %+v", d, c, v.caller)
		}
		v.got = d
	}
	h.opts.Errors = writer
	if random.IntN(3) > 0 {
		h.opts.Queue, h.opts.Wait = 1+random.IntN(4), 100*time.Millisecond
	}
	if h.process {
		h.limiter = testcheck.Must(inflight.NewProcess(h.limit, h.opts))
	} else {
		h.limiter = testcheck.Must(inflight.New(h.limit, func(r *http.Request) (inflight.Caller, error) { return visitOf(r).caller, nil }, h.opts))
	}
	return h
}

// send sends a request that stays as long as it can.
func (h *history) send(random *rand.Rand) {
	v := &visit{leave: make(chan struct{}), began: time.Now(), until: time.Now().Add(h.opts.Wait)}
	if !h.process {
		v.caller = inflight.Caller{Subject: []string{"ann", "bob"}[random.IntN(2)], Limit: max(0, random.IntN(8)-3)}
	}
	ctx, end := context.WithCancel(context.WithValue(h.Context(), visitKey{}, v))
	switch after := time.Duration(random.IntN(13)) * 10 * time.Millisecond; random.IntN(4) {
	case 0: // its client goes
		if time.AfterFunc(after, end); after == 0 {
			end()
		}
		v.gone = 0 < after && after < h.opts.Wait
		v.until = v.began.Add(min(after, h.opts.Wait))
	case 1: // a deadline ends it
		ctx, end = context.WithTimeout(ctx, after)
		v.until = v.began.Add(min(after, h.opts.Wait))
	}
	h.Cleanup(end)
	go func() {
		w := serve(h.limiter.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			h.mu.Lock()
			v.inside = true
			h.mu.Unlock()
			<-v.leave
		})), request("").WithContext(ctx))
		h.mu.Lock()
		defer h.mu.Unlock()
		v.code, v.body = w.Code, w.Body.String()
	}()
	h.all = append(h.all, v)

	subject := v.caller.Subject
	v.want.Limit = h.limit
	if v.caller.Limit > 0 {
		v.want.Limit = v.caller.Limit
	}
	h.limits[subject] = v.want.Limit
	h.waiting[subject] = append(h.waiting[subject], v)
	h.admit(subject)
	if n := len(h.waiting[subject]); n > h.opts.Queue {
		h.refuse(v, v.began)
		h.waiting[subject] = h.waiting[subject][:n-1]
	}
	h.expire()
	synctest.Wait()
}

// finish lets the handler of a request return.
func (h *history) finish(v *visit) {
	subject := v.caller.Subject
	close(v.leave)
	v.wantCode = 200
	h.running[subject] = slices.DeleteFunc(h.running[subject], func(other *visit) bool { return other == v })
	h.admit(subject)
	synctest.Wait()
}

// admit lets requests that wait run, the first first.
func (h *history) admit(subject string) {
	var admitted []*visit
	for len(h.waiting[subject]) > 0 && len(h.running[subject]) < h.limits[subject] {
		v := h.waiting[subject][0]
		h.waiting[subject] = h.waiting[subject][1:]
		h.running[subject] = append(h.running[subject], v)
		admitted = append(admitted, v)
		h.stats.Admitted++
	}
	for _, v := range admitted { // together
		v.want.Admitted, v.want.Running, v.want.Waited = true, len(h.running[subject]), time.Since(v.began)
	}
}

func (h *history) refuse(v *visit, at time.Time) {
	v.want.Running, v.want.Waited = len(h.running[v.caller.Subject]), at.Sub(v.began)
	h.stats.Refused++
	switch {
	case v.gone && v.want.Waited > 0:
		v.wantCode, v.wantBody = 499, "client_closed_request map[]"
	case h.process:
		v.wantCode, v.wantBody = 503, "overloaded map[]"
	default:
		v.wantCode, v.wantBody = 429, fmt.Sprintf("too_many_concurrent_requests map[limit:%d]", v.want.Limit)
	}
}

// expire refuses the requests that have waited as long as they can.
func (h *history) expire() {
	for subject, waiting := range h.waiting {
		h.waiting[subject] = slices.DeleteFunc(waiting, func(v *visit) bool {
			ended := !time.Now().Before(v.until)
			if ended {
				h.refuse(v, v.until)
			}
			return ended
		})
	}
}

func (h *history) compare() {
	want := h.stats
	for _, subject := range []string{"ann", "bob", ""} {
		want.Running += len(h.running[subject])
		want.Waiting += len(h.waiting[subject])
		want.Subjects += min(len(h.running[subject]), 1)
	}
	if got := h.limiter.Stats(); got != want {
		h.Errorf("Stats: %+v, want %+v", got, want)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, v := range h.all {
		decided := v.want
		if slices.Contains(h.waiting[v.caller.Subject], v) {
			decided = inflight.Decision{}
		}
		if v.got != decided || v.inside != decided.Admitted || v.code != v.wantCode || v.body != v.wantBody {
			h.Errorf("request %d: %+v, in its handler %t, answered %d %s; want %+v, %t, %d %s",
				i, v.got, v.inside, v.code, v.body, decided, decided.Admitted, v.wantCode, v.wantBody)
		}
	}
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
