package api_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/api"
)

func TestFailedRequestIsGivenBackToKeyAndOwner(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *api.Config) {
		c.Pets = &brokenStore{fail: func(context.Context) error { return errors.New("x") }}
	})
	limited, _ := limitedKeys(t, s, "3/minute")
	for range 5 {
		want(t, limited.Get(t, "/v1/pets"), 500, "internal")
	}
	if d := cmp.Diff([]int64{10, 3}, left(t, limited)); d != "" {
		t.Errorf("left of the owner and the key (-want +got):\n%s", d)
	}
}

// A calledLimiter counts what the server asks it.
type calledLimiter struct {
	api.Limiter
	takes, together, refunds atomic.Int64
}

func (l *calledLimiter) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if !strings.HasPrefix(subject, "uncharged:") {
		l.takes.Add(1)
	}
	return l.Limiter.Take(ctx, subject, plan, cost)
}

func (l *calledLimiter) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	l.together.Add(1)
	return l.Limiter.TakeAll(ctx, charges, decisions)
}

func (l *calledLimiter) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	l.refunds.Add(1)
	return l.Limiter.Adjust(ctx, subject, d, units, id)
}

// Key and owner are charged at one instant: no request sees a unit that is about to be
// given back, and none is lost if the process dies.
func TestKeyAndOwnerAreOneDecision(t *testing.T) {
	t.Parallel()
	var limiter calledLimiter
	s := start(t, func(c *api.Config) {
		limiter.Limiter = c.Limiter
		c.Limiter = &limiter
	})
	limited, other := limitedKeys(t, s, "9/minute")
	for range 3 {
		want(t, other.Get(t, "/v1/pets"), 200, "")
	}
	for range 12 { // 7 of them are admitted
		limited.Get(t, "/v1/pets")
	}
	got := []int64{limiter.takes.Load(), limiter.together.Load(), limiter.refunds.Load()}
	if d := cmp.Diff([]int64{3, 12, 0}, got); d != "" {
		t.Errorf("decisions about the owner, about both, and refunds (-want +got):\n%s", d)
	}
}

func TestConcurrentRequestsOfALimitedKey(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		limit    string
		admitted int64
		left     []int64
	}{
		{"4/minute", 4, []int64{6, 0}},
		{"1000/minute", 10, []int64{0, 990}},
	} {
		s := start(t, nil)
		limited, _ := limitedKeys(t, s, test.limit)
		var wg sync.WaitGroup
		var admitted atomic.Int64
		for range 50 {
			wg.Go(func() {
				if limited.Get(t, "/v1/pets").StatusCode == 200 {
					admitted.Add(1)
				}
			})
		}
		wg.Wait()
		if got := admitted.Load(); got != test.admitted {
			t.Errorf("with %s: %d requests were admitted, want %d", test.limit, got, test.admitted)
		}
		if d := cmp.Diff(test.left, left(t, limited)); d != "" {
			t.Errorf("with %s: left of the owner and the key (-want +got):\n%s", test.limit, d)
		}
	}
}
