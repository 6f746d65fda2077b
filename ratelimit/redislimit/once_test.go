package redislimit_test

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
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
			var units [4]int64
			for i := range last + 1 {
				units[i] = 7
			}
			now := start
			for _, pause := range []time.Duration{0, 58 * time.Second, 4 * time.Second, 27 * time.Minute, time.Hour, 5 * time.Hour, 5 * time.Hour, 12 * time.Hour, 24 * time.Hour} {
				now = now.Add(pause)
				m.SetTime(now)
				m.FastForward(pause)
				must(t, addUsage(l, "mark", "a", plan, units, start.Add(ahead)))
				d, err := l.Peek(ctx, "a", plan)
				must(t, err)
				if n := engine.Of(plan).Quota(2).Limit - d.States[2].Remaining; n > 0 && now.Sub(start) > 6*time.Hour {
					t.Errorf("clocks %v apart, %v after a charge it is made once more", ahead, now.Sub(start))
				}
				for i, state := range d.States[:engine.Of(plan).Len()] {
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
			must(t, addUsage(l, mark, subject, lasting(1000), [4]int64{7}, time.Now()))
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

// A change is remembered for a minute, and until the last of its windows has ended, those of
// other plans too, but for no longer than a day and a window.
func TestMarkLasts(t *testing.T) {
	now := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan {
		return ratelimit.MustPlan("", ratelimit.Penalty{}, quotas...)
	}
	second, both := plan(ratelimit.Quota{Limit: 9, Window: time.Second}), plan(ratelimit.PerMinute(9), ratelimit.PerDay(9))
	midnight, none := now.Truncate(24*time.Hour).Add(24*time.Hour), fixedwindow.Window{}
	for _, test := range []struct {
		name      string
		plan      *ratelimit.Plan
		at        time.Time
		uncharged int                // a quota, from 1
		other     fixedwindow.Window // of another plan
		until     time.Time
	}{
		{"a short window", second, now, 0, none, now.Add(time.Minute)},
		{"the last window", both, now, 0, none, midnight},
		{"a window that was not charged", both, now, 2, none, now.Add(time.Minute)},
		{"a window of another plan", second, now, 0, fixedwindow.Window{Length: 86_400, End: uint32(midnight.Unix())}, midnight},
		{"a window of another plan, without a length", second, now, 0, fixedwindow.Window{End: uint32(midnight.Unix())}, now.Add(time.Minute)},
		{"a smooth quota", plan(ratelimit.PerHour(9).Smooth(1)), now, 0, none, now.Add(time.Hour)},
		{"a smooth quota that was not charged", plan(ratelimit.PerMinute(9), ratelimit.PerHour(9).Smooth(1)), now, 2, none, now.Add(time.Minute)},
		{"clocks hours apart", second, now.Add(5 * time.Hour), 0, none, now.Add(5*time.Hour + time.Second)},
		{"clocks years apart", second, now.AddDate(50, 0, 0), 0, none, now.Add(24 * time.Hour)},
		{"clocks years apart, a long window", both, now.AddDate(50, 0, 0), 0, none, midnight.Add(24 * time.Hour)},
	} {
		m, c := mini(t)
		m.SetTime(now)
		d := engine.Uncounted(test.plan, 0, test.at)
		if d.Receipt.Others[0] = test.other; test.uncharged > 0 {
			d.States[test.uncharged-1].Reset = 0
		}
		must(t, newLimiter(t, c).Adjust(ctx, "a", &d, 8, "id"))
		mark := c.Keys(ctx, "*!*").Val()
		if len(mark) != 1 {
			t.Fatalf("%s: the marks are %q, want one", test.name, mark)
		}
		if end := now.Add(m.TTL(mark[0])); end.Before(test.until) || end.After(test.until.Add(10*time.Second)) {
			t.Errorf("%s: the mark lasts until %v, want %v or a little longer", test.name, end, test.until)
		}
	}
}
