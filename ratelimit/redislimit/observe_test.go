package redislimit_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
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
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	strict := ratelimit.MustPlan("p", penalty, ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	take := func(subject string, plan *ratelimit.Plan) func() error {
		return func() error { return second(l.Take(ctx, subject, plan, 1)) }
	}
	for _, step := range []struct {
		what string
		do   func() error
		err  string   // how the error begins
		want []string // of each call, its requests, and how its error begins
	}{
		{"the first request of a server", take("a", plan), "", []string{"1 NOSCRIPT", "1"}},
		{"three requests of two subjects", func() error { return redislimit.TakeAll(l, plan)([]string{"a", "b", "a"}) }, "", []string{"3"}},
		{"a request without a plan", take("a", nil), "ratelimit:", nil},
		{"the whole limit", take("banned", strict), "", []string{"1"}},
		{"a strike", take("banned", strict), "", []string{"1"}},
		{"the start of a ban, which needs the index of bans", take("banned", strict), "", []string{"1", "1"}},
		{"a list of one ban", func() error { return second(l.Bans(ctx)) }, "", []string{"1"}},
		{"a server that is gone", func() error { m.Close(); return take("a", plan)() }, "redislimit:", []string{"1 dial"}},
	} {
		if err := step.do(); firstWord(err) != step.err {
			t.Errorf("%s: error %v, want one that begins with %q", step.what, err, step.err)
		}
		var got []string
		for _, b := range o.take() {
			got = append(got, strings.TrimSpace(fmt.Sprint(b.Requests, " ", firstWord(b.Err))))
			if b.Duration <= 0 {
				t.Errorf("%s: a call took %v, want more than 0s", step.what, b.Duration)
			}
		}
		if !slices.Equal(got, step.want) {
			t.Errorf("%s: calls of %q, want %q", step.what, got, step.want)
		}
	}
}

// firstWord returns how the text of an error begins; "" if there is none.
func firstWord(err error) string {
	if err == nil {
		return ""
	}
	word, _, _ := strings.Cut(err.Error(), " ")
	return word
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
