package main

import (
	"context"
	"errors"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

const perMinute, perDay = 1000, 100_000

var tested = ratelimit.MustPlan("tested", ratelimit.Penalty{}, ratelimit.PerMinute(perMinute), ratelimit.PerDay(perDay))

// newRegions returns connected regions, in each of which tested is known. deliver sends usage
// to the add of a region.
func newRegions(t *testing.T, n int, pause time.Duration, deliver func(add func(context.Context, []usage) error, all []usage) error) (regions []*region, stop func()) {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	for range n {
		limiter, err := memory.New(memory.Options{})
		testcheck.NoError(t, err)
		regions = append(regions, &region{local: limiter, plans: map[string]*ratelimit.Plan{"tested": tested}})
	}
	for _, from := range regions {
		for _, to := range regions {
			if from != to {
				connect(ctx, pause, from, func(ctx context.Context, all []usage) error {
					if err := ctx.Err(); err != nil {
						return err
					}
					return deliver(to.add, all)
				})
			}
		}
	}
	return regions, stop
}

// used returns what a subject has used of the day, by the engine of a region.
func (r *region) used(t *testing.T, subject string) int64 {
	t.Helper()
	d := testcheck.Must(r.local.(*memory.Limiter).Peek(t.Context(), subject, tested))
	return perDay - d.States[1].Remaining
}

// A subject sends requests to n regions at the same rate. In a minute they admit its limit,
// and at most what the other regions admit until a region knows of it, or the limit of each.
// In the end all regions know all that was admitted.
func TestBound(t *testing.T) {
	for _, test := range []struct {
		n            int
		perS         int           // requests to each region
		pause, delay time.Duration // between exchanges, and one way between regions
		cut          time.Duration // how long no usage arrives, from the beginning of the minute on
	}{
		{n: 2, perS: 50, pause: 100 * time.Millisecond, delay: 40 * time.Millisecond},
		{n: 2, perS: 50, pause: time.Second, delay: 40 * time.Millisecond},
		{n: 2, perS: 500, pause: 100 * time.Millisecond, delay: 40 * time.Millisecond},
		{n: 3, perS: 50, pause: 100 * time.Millisecond, delay: 100 * time.Millisecond},
		{n: 2, perS: 50, pause: 100 * time.Millisecond, delay: 40 * time.Millisecond, cut: 5 * time.Second},
		{n: 2, perS: 50, pause: 100 * time.Millisecond, delay: 40 * time.Millisecond, cut: 15 * time.Second},
		{n: 3, perS: 50, pause: 100 * time.Millisecond, delay: 40 * time.Millisecond, cut: 45 * time.Second},
	} {
		synctest.Test(t, func(t *testing.T) { // begins at midnight
			mended := time.Now().Add(test.cut)
			regions, stop := newRegions(t, test.n, test.pause, func(add func(context.Context, []usage) error, all []usage) error {
				time.Sleep(test.delay)
				if time.Now().Before(mended) {
					return errors.New("cut")
				}
				err := add(context.Background(), all)
				time.Sleep(test.delay)
				return err
			})
			var admitted atomic.Int64
			var clients sync.WaitGroup
			for _, r := range regions {
				clients.Go(func() {
					for range 58 * test.perS {
						if d, err := r.Take(t.Context(), "user:ann", tested, 1); err != nil {
							t.Error(err)
						} else if d.Allowed() {
							admitted.Add(1)
						}
						time.Sleep(time.Second / time.Duration(test.perS))
					}
				})
			}
			clients.Wait()
			stop()
			time.Sleep(time.Second) // for the last exchange

			got := int(admitted.Load())
			unknown := test.pause + 3*test.delay + test.cut
			most := perMinute + min((test.n-1)*(test.perS*int(unknown/time.Millisecond)/1000+1), (test.n-1)*perMinute)
			t.Logf("%d regions, %d/s each, every %v, %v away, cut for %v: %d of %d, at most %d", test.n, test.perS, test.pause, test.delay, test.cut, got, perMinute, most)
			if got < perMinute || got > most {
				t.Errorf("%d requests are admitted, want %d to %d", got, perMinute, most)
			}
			for i, r := range regions {
				if used := r.used(t, "user:ann"); used != int64(got) {
					t.Errorf("region %d has counted %d, want the %d that were admitted in all", i, used, got)
				}
			}
		})
	}
}

// Everything that changes usage reaches the other region: several charges, of which a refusal
// charges none, and refunds.
func TestWhatIsExchanged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		regions, stop := newRegions(t, 2, time.Second, func(add func(context.Context, []usage) error, all []usage) error {
			return add(context.Background(), all)
		})
		defer stop()
		r := regions[0]
		d, err := r.Take(t.Context(), "user:ann", tested, 5)
		time.Sleep(1500 * time.Millisecond)
		if used := regions[1].used(t, "user:ann"); used != 5 {
			t.Errorf("the other region has counted %d, want 5", used)
		}
		err = errors.Join(err, r.Adjust(t.Context(), "user:ann", &d, 2, ""))
		for _, cost := range []int64{10, perMinute} { // the second is refused
			charges := []ratelimit.Charge{{Subject: "user:ann", Plan: tested, Cost: 1}, {Subject: "acme", Plan: tested, Cost: cost}}
			err = errors.Join(err, r.TakeAll(t.Context(), charges, make([]ratelimit.Decision, 2)))
		}
		if _, err2 := r.Take(t.Context(), "staff:joe", ratelimit.UnlimitedPlan("staff"), 1); err != nil || err2 != nil {
			t.Fatal(err, err2)
		}
		r.peers[0].mu.Lock()
		n := len(r.peers[0].used)
		r.peers[0].mu.Unlock()
		if n != 2 {
			t.Errorf("%d usages wait for the next exchange, want one for each subject with quotas", n)
		}
		time.Sleep(time.Second)
		for i, r := range regions {
			if ann, acme := r.used(t, "user:ann"), r.used(t, "acme"); ann != 3 || acme != 10 {
				t.Errorf("region %d has counted %d for user:ann and %d for acme, want 3 and 10", i, ann, acme)
			}
		}
	})
}

// Usage counts in the windows that it was charged in, though the exchange is later. What a
// process has charged before it ends is sent.
func TestWindows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // begins at midnight
		var cut atomic.Bool
		regions, stop := newRegions(t, 2, 7*time.Second, func(add func(context.Context, []usage) error, all []usage) error {
			if cut.Load() {
				return errors.New("cut")
			}
			return add(context.Background(), all)
		})
		take := func(cost int64) {
			if _, err := regions[0].Take(t.Context(), "user:ann", tested, cost); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
		}
		time.Sleep(59500 * time.Millisecond) // between two exchanges
		take(3)
		take(4)
		time.Sleep(7 * time.Second)
		d, err := regions[1].local.(*memory.Limiter).Peek(t.Context(), "user:ann", tested)
		if minute, day := perMinute-d.States[0].Remaining, perDay-d.States[1].Remaining; err != nil || minute != 4 || day != 7 {
			t.Errorf("the other region has counted %d in the minute and %d in the day, %v, want 4 and 7", minute, day, err)
		}
		take(1)
		cut.Store(true)
		time.Sleep(time.Second) // this is sent in vain
		cut.Store(false)
		take(1)
		stop()
		time.Sleep(time.Second)
		if used := regions[1].used(t, "user:ann"); used != 9 {
			t.Errorf("the other region has counted %d, want 9", used)
		}
	})
}

// A plan that a region does not have is not taken for one without usage. Usage of other plans
// that came with it is not counted either, since it is sent again.
func TestUnknownPlan(t *testing.T) {
	regions, stop := newRegions(t, 1, time.Second, nil)
	defer stop()
	all := []usage{{Subject: "user:ann", Plan: "tested", Time: time.Now().UnixNano(), Units: 1}, {Subject: "user:bob", Plan: "pro", Units: 1}}
	if err := regions[0].add(t.Context(), all); err == nil || !strings.Contains(err.Error(), `"pro"`) {
		t.Errorf("the error is %v, want one that names the plan", err)
	}
	if used := regions[0].used(t, "user:ann"); used != 0 {
		t.Errorf("%d units of a known plan are counted, want none before the plans are the same", used)
	}
}

// Usage whose answer is lost is sent again, and counted once in Redis.
func TestLostAnswer(t *testing.T) {
	client := redis.NewClient(&redis.Options{Addr: miniredis.RunT(t).Addr()})
	defer client.Close()
	limiter, err := redislimit.New(client, redislimit.Options{})
	testcheck.NoError(t, err)
	other := &region{local: limiter, plans: map[string]*ratelimit.Plan{"tested": tested}}
	arrived := make(chan []usage, 2)
	times := 0
	regions, stop := newRegions(t, 1, time.Millisecond, nil)
	defer stop()
	connect(t.Context(), time.Millisecond, regions[0], func(ctx context.Context, all []usage) error {
		if err := other.add(ctx, all); err != nil {
			t.Error(err)
		}
		arrived <- all
		times++
		return map[int]error{1: errors.New("the answer is lost")}[times]
	})
	if _, err := regions[0].Take(t.Context(), "user:ann", tested, 7); err != nil {
		t.Fatal(err)
	}
	first, second := <-arrived, <-arrived
	if !slices.Equal(first, second) {
		t.Errorf("first %v is sent, then %v, want the same", first, second)
	}
	d, err := limiter.Peek(t.Context(), "user:ann", tested)
	if used := perDay - d.States[1].Remaining; err != nil || used != 7 {
		t.Errorf("Redis has counted %d, %v, want 7", used, err)
	}
}

// The service does what the comment in main.go shows.
func TestService(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		h := testcheck.Must(newHandler(ctx, 100*time.Millisecond))
		for i, want := range []int{200, 200, 200, 200, 200, 429, 429} {
			r := httptest.NewRequest("GET", []string{"/eu/report", "/us/report"}[i%2], nil)
			r.SetBasicAuth("ann", "")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			if w.Code != want {
				t.Errorf("request %d: %d, want %d", i, w.Code, want)
			}
			time.Sleep(time.Second)
		}
	})
}
