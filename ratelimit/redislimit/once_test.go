package redislimit_test

import (
	"context"
	"errors"
	"strconv"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A scriptCounter is a hook that counts the calls of the script.
type scriptCounter struct{ atomic.Int64 }

func (n *scriptCounter) DialHook(next redis.DialHook) redis.DialHook { return next }

func (n *scriptCounter) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		if cmd.Name() == "evalsha" {
			n.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (n *scriptCounter) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return next
}

// An adjustment that is not answered is sent again only if it has an id.
func TestAdjustIsSentAgain(t *testing.T) {
	for _, test := range []struct {
		name, id string
		lost     bool // the answer
		sent     int64
	}{
		{"answered", "id", false, 1},
		{"answered, without an id", "", false, 1},
		{"lost", "id", true, 4},
		{"lost, without an id", "", true, 1},
	} {
		m, c := mini(t)
		sent := new(scriptCounter)
		c.AddHook(sent)
		l := newLimiter(t, c)
		if test.lost {
			m.SetError("lost")
		}
		err := addUsage(l, test.id, "a", lasting(5), [4]int64{1}, time.Now())
		if n := sent.Load(); n != test.sent || errors.Is(err, ratelimit.ErrUnavailable) != test.lost {
			t.Errorf("%s: Adjust called the script %d times and returned %v, want %d times", test.name, n, err, test.sent)
		}
	}
}

// Settling a request again and again leaves ids in Redis for ten minutes, however long its
// windows are. Until then each adjustment can be repeated.
func TestIdsAreForgotten(t *testing.T) {
	m, c := mini(t)
	l, plan := newLimiter(t, c), ratelimit.MustPlan("", ratelimit.Penalty{}, ratelimit.PerDay(1000), ratelimit.PerMonth(1000))
	d, err := l.Take(ctx, "a", plan, 100)
	must(t, err)
	settle := func(cost int64) {
		t.Helper()
		d.Cost = cost
		must(t, l.Adjust(ctx, "a", &d, cost+1, strconv.FormatInt(cost, 10)))
	}
	for cost := range int64(20) {
		settle(100 + cost)
		settle(100 + cost) // the answer was lost
	}
	m.FastForward(10*time.Minute - time.Second)
	settle(100)
	if after, err := l.Peek(ctx, "a", plan); err != nil || after.Remaining() != 1000-120 {
		t.Errorf("a request of 100 units that was settled at 120: %d of 1000 remain, %v", after.Remaining(), err)
	}
	m.FastForward(time.Second)
	if keys := c.Keys(ctx, "*!*").Val(); len(keys) > 0 {
		t.Errorf("ten minutes later there are %q", keys)
	}
}
