package redislimit_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// An observer keeps what Options.Observe is called with.
type observer struct {
	mu      sync.Mutex
	batches []observation
}

type observation struct {
	Requests int
	Duration time.Duration
	Err      error
}

func (o *observer) observe(requests int, took time.Duration, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.batches = append(o.batches, observation{requests, took, err})
}

// take returns what was observed since the last call.
func (o *observer) take() []observation {
	o.mu.Lock()
	defer o.mu.Unlock()
	batches := o.batches
	o.batches = nil
	return batches
}

func observed(t *testing.T, observe func(int, time.Duration, error)) (*miniredis.Miniredis, *redislimit.Limiter) {
	t.Helper()
	m := miniredis.RunT(t)
	c := redis.NewClient(&redis.Options{Addr: m.Addr(), MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	l, err := redislimit.New(c, redislimit.Options{Observe: observe})
	must(t, err)
	return m, l
}

func TestObserve(t *testing.T) {
	var o observer
	m, l := observed(t, o.observe)
	plan := lasting(100)
	_, err := l.Take(ctx, "a", plan, 1)
	must(t, err)
	b := o.take()
	if len(b) != 2 || b[0].Err == nil || !strings.HasPrefix(b[0].Err.Error(), "NOSCRIPT") || b[1].Err != nil || b[1].Requests != 1 {
		t.Errorf("the first request of a server: %+v, want a call with NOSCRIPT and one without an error", b)
	}
	for i := range b {
		if b[i].Duration <= 0 {
			t.Errorf("call %d took %v, want more than 0s", i+1, b[i].Duration)
		}
	}
	must(t, redislimit.TakeAll(l, plan)([]string{"a", "b", "a"}))
	if b := o.take(); len(b) != 1 || b[0].Requests != 3 || b[0].Err != nil {
		t.Errorf("three requests of two subjects: %+v, want one call with 3 requests", b)
	}
	if _, err := l.Take(ctx, "a", nil, 1); err == nil {
		t.Error("a request without a plan was decided")
	}
	if b := o.take(); len(b) != 0 {
		t.Errorf("an invalid call: %+v, want no call of the script", b)
	}
	// A request that starts a ban needs two calls of the script: the second one has the
	// index of bans as well.
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	strict := ratelimit.MustPlan("p", penalty, ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	for range 2 {
		_, err := l.Take(ctx, "banned", strict, 1)
		must(t, err)
	}
	o.take()
	d, err := l.Take(ctx, "banned", strict, 1)
	if err != nil || !d.Struck || d.Outcome != ratelimit.Banned {
		t.Fatalf("%v with Struck %v, %v, want a ban", d.Outcome, d.Struck, err)
	}
	if b := o.take(); len(b) != 2 {
		t.Errorf("a request that starts a ban: %+v, want two calls", b)
	}
	if bans, err := l.Bans(ctx); err != nil || len(bans) != 1 {
		t.Fatalf("bans %v, %v, want one", bans, err)
	}
	if b := o.take(); len(b) != 1 || b[0].Requests != 1 {
		t.Errorf("a list of one ban: %+v, want one call with 1 request", b)
	}
	m.Close()
	if _, err := l.Take(ctx, "a", plan, 1); err == nil {
		t.Error("a server that is gone decided")
	}
	if b := o.take(); len(b) != 1 || b[0].Requests != 1 || b[0].Err == nil {
		t.Errorf("a server that is gone: %+v, want one call with an error", b)
	}
}

// While Observe runs, other requests can come and leave.
func TestObserveHoldsNoLock(t *testing.T) {
	running, end := make(chan struct{}), make(chan struct{})
	var once sync.Once
	_, l := observed(t, func(int, time.Duration, error) {
		once.Do(func() {
			close(running)
			<-end
		})
	})
	done := make(chan error)
	go func() {
		_, err := l.Take(ctx, "a", lasting(100), 1)
		done <- err
	}()
	<-running
	short, cancel := context.WithCancel(ctx)
	left := make(chan error)
	go func() {
		_, err := l.Take(short, "b", lasting(100), 1)
		left <- err
	}()
	cancel()
	if err := <-left; err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("a request beside one that is being observed: %v", err)
	}
	close(end)
	if err := <-done; err != nil {
		t.Error(err)
	}
}
