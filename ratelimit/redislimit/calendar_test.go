package redislimit_test

import (
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// The server's clock says in which month a request is, however wrong the clock of this
// process. Only if they are windows apart is a request sent twice, and then once for all.
func TestCalendarOfServer(t *testing.T) {
	minute := ratelimit.PerMinute(1000)
	for name, quota := range map[string]ratelimit.Quota{"beside a fixed window": minute, "beside a smooth quota": minute.Smooth(1000)} {
		month := ratelimit.MustPlan("month", ratelimit.Penalty{}, quota, ratelimit.PerMonth(1000))
		t.Run(name, func(t *testing.T) {
			testCalendarOfServer(t, month, func(l *redislimit.Limiter) (ratelimit.Decision, error) { return l.Take(ctx, "a", month, 1) })
		})
		t.Run(name+", in a group", func(t *testing.T) {
			testCalendarOfServer(t, month, func(l *redislimit.Limiter) (ratelimit.Decision, error) {
				return takeGroup(l, "a", month, lasting(1000))
			})
		})
	}
}

func testCalendarOfServer(t *testing.T, month *ratelimit.Plan, take func(*redislimit.Limiter) (ratelimit.Decision, error)) {
	t.Helper()
	m, c := mini(t)
	sent := new(scriptCounter)
	c.AddHook(sent)
	l := newLimiter(t, c)
	for _, step := range []struct {
		name  string
		at    time.Time
		calls int64
	}{
		{"years ago", time.Date(2001, time.February, 28, 23, 59, 59, 0, time.UTC), 2},
		{"a second later, in the next month", time.Date(2001, time.March, 1, 0, 0, 0, 0, time.UTC), 1},
		{"at the end of that month", time.Date(2001, time.March, 31, 23, 59, 59, 0, time.UTC), 1},
		{"half a year later", time.Date(2001, time.October, 14, 0, 0, 0, 0, time.UTC), 2},
		{"a month before", time.Date(2001, time.September, 14, 0, 0, 0, 0, time.UTC), 1},
		{"years ahead", time.Date(2096, time.February, 29, 0, 0, 0, 0, time.UTC), 2},
		{"when this process knows nothing of the server's clock", time.Now(), 2},
	} {
		m.FlushAll()
		m.SetTime(step.at)
		before := sent.Load()
		y, mon, _ := step.at.UTC().Date()
		d, err := take(l)
		if err != nil {
			t.Fatalf("%s: %v", step.name, err)
		}
		if want := time.Date(y, mon+1, 1, 0, 0, 0, 0, time.UTC).Unix(); d.States[1] != (ratelimit.State{Remaining: 999, Reset: want}) {
			t.Errorf("%s: %+v, want 999 until %d", step.name, d.States[1], want)
		}
		if calls := sent.Load() - before; calls != step.calls {
			t.Errorf("%s: the script was called %d times, want %d", step.name, calls, step.calls)
		}
	}
	m.SetTime(time.Date(2001, time.February, 28, 23, 59, 59, 0, time.UTC))
	must(t, addUsage(l, "", "b", month, [4]int64{1, 5}, time.Date(2001, time.February, 3, 0, 0, 0, 0, time.UTC)))
	d, err := l.Peek(ctx, "b", month)
	if err != nil || d.States[1].Remaining != 995 {
		t.Errorf("added usage, far from this process's clock: %+v, %v, want 995 left", d.States[1], err)
	}
}

// However often a subject is banned, its record can be written: the level stops at
// 255, and the time at which the level is forgiven where four bytes end, in 2106.
func TestManyBansOfOneSubject(t *testing.T) {
	m, c := mini(t)
	now := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	l := newLimiter(t, c)
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{
		Strikes: 1, Decay: time.Hour, Ban: time.Second, Growth: 1, Max: time.Second, Forgive: fixedwindow.MaxLength,
	}, ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	for i := range 260 {
		now = now.Add(2 * time.Second)
		m.SetTime(now)
		for outcome := ratelimit.Allowed; outcome != ratelimit.Banned; {
			d, err := l.Take(ctx, "a", plan, 1)
			if err != nil {
				t.Fatalf("ban %d: %v", i+1, err)
			}
			outcome = d.Outcome
		}
		if i > 0 && i < 253 { // a list takes some time
			continue
		}
		bans, err := l.Bans(ctx)
		if want := min(i+1, 255); err != nil || len(bans) != 1 || bans[0].Level != want {
			t.Fatalf("ban %d: %v, %v, want one of level %d", i+1, bans, err, want)
		}
	}
}
