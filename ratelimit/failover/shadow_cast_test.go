package failover_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A watched engine is a local one. Before it is charged, it calls charging.
type watched struct {
	*memory.Limiter
	charging func() error
}

func (w *watched) AddUsage(ctx context.Context, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	if err := w.charging(); err != nil {
		return err
	}
	return w.Limiter.AddUsage(ctx, subject, plan, units, at)
}

// others lets other goroutines run.
func others() {
	for range 100 {
		runtime.Gosched()
	}
}

var two = ratelimit.MustPlan("two", ratelimit.Penalty{}, ratelimit.Quota{Limit: 2, Window: ratelimit.MaxWindow})

// outage returns a Limiter in front of a primary that is gone, and at which so
// many subjects, "0", "1" and so on, have used up plan two.
func outage(t *testing.T, local ratelimit.Limiter, subjects int) *failover.Limiter {
	t.Helper()
	primary := newShared(t)
	l, err := failover.New(primary, failover.FailLocal, failover.Options{
		Local: local, Row: 1, FirstProbe: time.Hour,
		Budget: time.Minute, // a machine that is busy is no fault
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	for i := range subjects {
		for _, want := range []ratelimit.Outcome{ratelimit.Allowed, ratelimit.Allowed, ratelimit.Limited} {
			if d, err := l.Take(ctx, fmt.Sprint(i), two, 1); err != nil || d.Outcome != want {
				t.Fatalf("before the outage: got %v, %v, want %v", d.Outcome, err, want)
			}
		}
	}
	primary.set(down)
	return l
}

// Of many requests that come at once, none is decided before the local engine
// knows what the primary last said.
func TestShadowIsCastBeforeAnybodyIsAdmitted(t *testing.T) {
	const subjects, callers = 300, 8
	l := outage(t, &watched{newEngine(t), func() error { others(); return nil }}, subjects)
	var admitted, failed atomic.Int64
	for i := range subjects {
		var wg sync.WaitGroup
		start := make(chan struct{})
		for range callers {
			wg.Go(func() {
				<-start
				switch d, err := l.Take(ctx, fmt.Sprint(i), two, 1); {
				case err != nil:
					failed.Add(1)
				case d.Allowed():
					admitted.Add(1)
				}
			})
		}
		close(start)
		wg.Wait()
	}
	if a, f := admitted.Load(), failed.Load(); a > 0 || f > 0 {
		t.Errorf("of subjects that had used up their quota at the primary %d requests were admitted, and %d failed, want none", a, f)
	}
}

// A local engine that fails holds nobody up, and is told again.
func TestShadowOutlivesAFailure(t *testing.T) {
	for _, test := range []struct {
		name string
		fail func() error
	}{
		{"an error", func() error { return errors.New("no room") }},
		{"a panic", func() error { panic("index out of range") }},
		{"the end of the goroutine", func() error { runtime.Goexit(); return nil }},
	} {
		t.Run(test.name, func(t *testing.T) {
			local := &watched{newEngine(t), test.fail}
			l := outage(t, local, 1)
			for range 2 {
				gone := make(chan struct{})
				go func() {
					defer close(gone)
					defer func() { _ = recover() }()
					l.Peek(ctx, "0", two)
				}()
				<-gone
			}
			local.charging = func() error { return nil }
			if d, err := l.Take(ctx, "0", two, 1); err != nil || d.Outcome != ratelimit.Limited {
				t.Errorf("once the local engine works: got %v, %v, want limited", d.Outcome, err)
			}
			if d, err := l.Take(ctx, "another", two, 1); err != nil || !d.Allowed() {
				t.Errorf("another subject: got %v, %v, want allowed", d.Outcome, err)
			}
		})
	}
}

// A reset that comes while the shadow is cast is not undone by it.
func TestShadowIsCastBeforeAReset(t *testing.T) {
	const subjects = 100
	var l *failover.Limiter
	var subject string
	var resets sync.WaitGroup
	l = outage(t, &watched{newEngine(t), func() error {
		resets.Go(func() {
			if err := l.Reset(ctx, subject); err != nil {
				t.Error(err)
			}
		})
		others()
		return nil
	}}, subjects)
	for i := range subjects {
		subject = fmt.Sprint(i)
		if _, err := l.Take(ctx, subject, two, 1); err != nil {
			t.Fatal(err)
		}
		resets.Wait()
		if d, err := l.Peek(ctx, subject, two); err != nil || !d.Allowed() {
			t.Fatalf("after the reset: got %v, %v, want allowed", d.Outcome, err)
		}
	}
}
