package redislimit

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A road is a lane whose batches take as long as the test says.
type road struct {
	lane
	mu   sync.Mutex
	sent [][]string // the subjects of each batch
	most int        // batches under way at once
	now  int
	trip time.Duration
}

func newRoad(limit int, trip time.Duration) *road {
	r := &road{trip: trip}
	r.lane.limit = limit
	r.lane.send = func(groups []*group) {
		r.mu.Lock()
		r.now++
		r.most = max(r.most, r.now)
		var subjects []string
		for _, g := range groups {
			for range g.requests {
				subjects = append(subjects, g.subject)
			}
		}
		r.sent = append(r.sent, subjects)
		trip := r.trip
		r.mu.Unlock()
		time.Sleep(trip) // of the test's clock
		r.mu.Lock()
		r.now--
		r.mu.Unlock()
		for _, g := range groups {
			g.finish()
		}
	}
	return r
}

func (r *road) take(ctx context.Context, subject string) error {
	_, err := r.ask(ctx, question{op: opTake, subject: subject}, &call{ready: make(chan struct{}, 1)})
	return err
}

// underBoth runs a test with a context that may end, and with one that cannot.
func underBoth(t *testing.T, test func(*testing.T, context.Context)) {
	t.Run("a context that may end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, t.Context()) })
	})
	t.Run("a context that cannot end", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) { test(t, context.Background()) })
	})
}

func TestLoneCallDoesNotWait(t *testing.T) {
	underBoth(t, func(t *testing.T, ctx context.Context) {
		r := newRoad(8, time.Millisecond)
		start := time.Now()
		if err := r.take(ctx, "a"); err != nil {
			t.Error(err)
		}
		if took := time.Since(start); took != time.Millisecond {
			t.Errorf("a lone call took %v, want one trip of 1ms", took)
		}
	})
}

func TestCallsTravelTogether(t *testing.T) {
	underBoth(t, func(t *testing.T, ctx context.Context) {
		r := newRoad(8, 100*time.Microsecond)
		go r.take(ctx, "first")
		synctest.Wait()
		for range 3 {
			go r.take(ctx, "hot")
			go r.take(ctx, "other")
		}
		synctest.Wait()
		time.Sleep(time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		want := []string{"hot", "hot", "hot", "other", "other", "other"}
		if len(r.sent) != 2 || !slices.Equal(slices.Sorted(slices.Values(r.sent[1])), want) {
			t.Errorf("six who came while a batch was under way travelled as %v, want %v together", r.sent[1:], want)
		}
	})
}

// On a long way the next batch does not wait until the last is back.
func TestLongWay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const trip = 10 * time.Millisecond
		r := newRoad(4, trip)
		for range 100 { // the lane learns how long it takes
			if err := r.take(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		}
		var calls sync.WaitGroup
		start := time.Now()
		for range 4 {
			calls.Go(func() {
				if err := r.take(t.Context(), "a"); err != nil {
					t.Error(err)
				}
			})
			synctest.Wait()
		}
		calls.Wait()
		if took := time.Since(start); took != trip {
			t.Errorf("four calls at once took %v, want one trip of %v", took, trip)
		}
		for range 100 {
			go r.take(t.Context(), "a")
		}
		time.Sleep(time.Second)
		r.mu.Lock()
		defer r.mu.Unlock()
		if r.most != 4 {
			t.Errorf("%d batches were under way at once, want as many as may be: 4", r.most)
		}
	})
}

// Something that is stuck on a way that is short otherwise holds up those who were
// with it, and nobody else.
func TestStuck(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(4, time.Hour)
		go r.take(t.Context(), "stuck")
		synctest.Wait()
		r.mu.Lock()
		r.trip = time.Microsecond
		r.mu.Unlock()
		time.Sleep(time.Millisecond)
		start := time.Now()
		if err := r.take(t.Context(), "a"); err != nil || time.Since(start) != time.Microsecond {
			t.Errorf("beside a batch that is stuck: %v after %v, want one trip of 1us", err, time.Since(start))
		}
		time.Sleep(2 * time.Hour)
	})
}

func TestWhoLeavesIsNotSent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(1, time.Second)
		go r.take(t.Context(), "first")
		synctest.Wait()
		start := time.Now()
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
		defer cancel()
		var stayed sync.WaitGroup
		stayed.Go(func() {
			if err := r.take(t.Context(), "stays"); err != nil {
				t.Error(err)
			}
		})
		synctest.Wait()
		for _, subject := range []string{"leaves", "stays"} {
			if err := r.take(ctx, subject); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("a caller whose time ends: %v, want %v", err, context.DeadlineExceeded)
			}
		}
		if took := time.Since(start); took != 10*time.Millisecond {
			t.Errorf("a caller with 10ms left after %v", took)
		}
		stayed.Wait()
		r.mu.Lock()
		defer r.mu.Unlock()
		if len(r.sent) != 2 || !slices.Equal(r.sent[1], []string{"stays"}) {
			t.Errorf("after some left %v was sent, want the one who stayed", r.sent[1:])
		}
	})
}

// At rest a lane has no goroutine: the test's would otherwise not end.
func TestLaneAtRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := newRoad(2, time.Millisecond)
		for range 10 {
			go r.take(t.Context(), "a")
		}
		time.Sleep(time.Second)
		r.lane.mu.Lock()
		defer r.lane.mu.Unlock()
		if r.flights != 0 || len(r.waiting) != 0 {
			t.Errorf("at rest: %d flights, %d batches waiting, want none", r.flights, len(r.waiting))
		}
	})
}
