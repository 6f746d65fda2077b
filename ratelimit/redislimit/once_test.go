package redislimit_test

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func TestAdjustOnce(t *testing.T) {
	m, c := mini(t)
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(now)
	l := newLimiter(t, c)
	const limit = 1000
	charge := func(mark, subject string, want int64) {
		t.Helper()
		err := addUsage(l, mark, subject, lasting(limit), [ratelimit.MaxQuotas]int64{7}, now)
		if err != nil {
			t.Fatal(err)
		}
		if n := used(t, l, subject, limit); n != want {
			t.Errorf("%s has used %d after a charge marked %s, want %d", subject, n, mark, want)
		}
	}
	charge("first", "a", 7)
	charge("first", "a", 7)
	charge("second", "a", 14)
	charge("first", "b", 7)
	m.FastForward(59 * time.Second)
	charge("first", "a", 14)
	charge("", "a", 21)
	charge("", "a", 28)
}

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

// An adjustment that is answered is not sent again.
func TestAdjustIsOneCommand(t *testing.T) {
	_, c := mini(t)
	sent := new(scriptCounter)
	c.AddHook(sent)
	l := newLimiter(t, c)
	if err := addUsage(l, "id", "a", lasting(5), [ratelimit.MaxQuotas]int64{1}, time.Now()); err != nil {
		t.Fatal(err)
	}
	if n := sent.Load(); n != 1 {
		t.Errorf("Adjust called the script %d times, want once", n)
	}
}

// A charge that is repeated, however late, counts once: its mark outlives the last
// window in which it counts, and then the charge lies in the past.
func TestAdjustIsRepeatedLate(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	quotas := []ratelimit.Quota{
		{Limit: 1000, Window: time.Second}, ratelimit.PerMinute(1000), ratelimit.PerHour(1000), ratelimit.PerDay(1000),
	}
	plan := ratelimit.MustPlan("", ratelimit.Penalty{}, quotas...)
	for _, ahead := range []time.Duration{-30 * time.Second, 0, 30 * time.Second, 20 * time.Hour} { // of the other clock
		for last := range quotas { // the longest window that is charged
			m, c := mini(t)
			l := newLimiter(t, c)
			var units [ratelimit.MaxQuotas]int64
			for i := range last + 1 {
				units[i] = 7
			}
			now := start
			for _, pause := range []time.Duration{0, 58 * time.Second, 4 * time.Second, 27 * time.Minute, time.Hour, 5 * time.Hour, 5 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
				now = now.Add(pause)
				m.SetTime(now)
				m.FastForward(pause)
				if err := addUsage(l, "mark", "a", plan, units, start.Add(ahead)); err != nil {
					t.Fatal(err)
				}
				d, err := l.Peek(ctx, "a", plan)
				if err != nil {
					t.Fatal(err)
				}
				if n := plan.Quota(2).Limit - d.States[2].Remaining; n > 0 && now.Sub(start) > 6*time.Hour {
					t.Errorf("clocks %v apart, %v after a charge it is made once more", ahead, now.Sub(start))
				}
				for i, state := range d.States[:plan.Len()] {
					if n := quotas[i].Limit - state.Remaining; n > units[i] {
						t.Errorf("clocks %v apart, %v after a charge of %d units that is repeated: %d are used of %v", ahead, now.Sub(start), units[i], n, quotas[i])
					}
				}
			}
			if keys := c.Keys(ctx, "*").Val(); len(keys) > last+1 && ahead == 0 { // the last repetition leaves its marks for a minute
				t.Errorf("two days later %q are left", keys)
			}
		}
	}
}

// A mark is one subject's: others may use the same one, also with the same hash tag.
func TestMarksOfTwoSubjects(t *testing.T) {
	_, c := mini(t)
	l := newLimiter(t, c)
	mark := strings.Repeat("a mark may be long", 4000)
	for _, subject := range redislimit.SubjectsOfOneIndex(3) {
		for range 2 {
			if err := addUsage(l, mark, subject, lasting(1000), [ratelimit.MaxQuotas]int64{7}, time.Now()); err != nil {
				t.Fatal(err)
			}
		}
		if n := used(t, l, subject, 1000); n != 7 {
			t.Errorf("%s has used %d after a charge of 7 units that was repeated", subject, n)
		}
	}
	for _, key := range c.Keys(ctx, "*").Val() {
		if len(key) > 200 {
			t.Errorf("a key of %d bytes", len(key))
		}
	}
}

// A change is remembered until the windows of other plans have ended, too.
func TestMarkLastsAsTheWindowsOfOtherPlans(t *testing.T) {
	m, c := mini(t)
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	m.SetTime(now)
	l := newLimiter(t, c)
	day, minute := ratelimit.MustPlan("day", ratelimit.Penalty{}, ratelimit.PerDay(1000)), ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(1000))
	if _, err := l.Take(ctx, "a", day, 1); err != nil {
		t.Fatal(err)
	}
	d, err := l.Take(ctx, "a", minute, 1)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := l.Adjust(ctx, "a", &d, 8, "id"); err != nil {
			t.Fatal(err)
		}
		now = now.Add(3 * time.Minute)
		m.SetTime(now)
		m.FastForward(3 * time.Minute)
	}
	if d, err = l.Peek(ctx, "a", day); err != nil || d.Remaining() != 991 {
		t.Errorf("%d of the day are left, with error %v, want 991: a request and another one of 8", d.Remaining(), err)
	}
}
