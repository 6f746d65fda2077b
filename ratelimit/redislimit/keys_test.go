package redislimit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

func TestNewRefuses(t *testing.T) {
	_, c := mini(t)
	// A nil pointer of a client's type is refused at the start, and not at the first call.
	const none = "redislimit: New needs a client, got nil"
	for _, test := range []struct {
		client  redis.UniversalClient
		options redislimit.Options
		want    string // error
	}{
		{c, redislimit.Options{}, "<nil>"},
		{c, redislimit.Options{Prefix: "app:limits"}, "<nil>"},
		{c, redislimit.Options{Prefix: "app{1}"}, `redislimit: Options.Prefix must have no braces, got "app{1}"`},
		{c, redislimit.Options{Prefix: strings.Repeat("a", 65)}, "redislimit: Options.Prefix must have at most 64 bytes, got 65"},
		{nil, redislimit.Options{}, none},
		{(*redis.Client)(nil), redislimit.Options{}, none},
		{(*redis.ClusterClient)(nil), redislimit.Options{}, none},
		{(*redis.Ring)(nil), redislimit.Options{}, none},
	} {
		if _, err := redislimit.New(test.client, test.options); fmt.Sprint(err) != test.want {
			t.Errorf("New with %T and %+v: got error %q, want %q", test.client, test.options, err, test.want)
		}
	}
}

// Whatever becomes of a subject, nothing of it stays in Redis for ever.
func TestEveryKeyExpires(t *testing.T) {
	m, c := mini(t)
	start := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(start)
	l := newLimiter(t, c)
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Minute, Growth: 2, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("", penalty, ratelimit.PerMinute(2), ratelimit.PerHour(100))
	for i := range 6 { // of one subject and then of others: from one request to a ban
		subject := fmt.Sprint(i)
		for range i {
			d, err := l.Take(ctx, subject, plan, 1)
			must(t, err)
			must(t, l.Adjust(ctx, "refunded "+subject, &d, 0, ""))
		}
	}
	must(t, l.Ban(ctx, "by hand", 10*time.Minute, ""))
	_, err := l.Peek(ctx, "peeked", plan)
	must(t, err)
	must(t, addUsage(l, "id", "charged", plan, [4]int64{1, 1}, start))
	keys := m.Keys()
	if len(keys) < 9 {
		t.Fatalf("keys %v, want one for each of seven subjects, the indexes, and the mark of a charge", keys)
	}
	for _, key := range keys {
		if ttl := m.TTL(key); ttl <= 0 || ttl > 4*time.Hour {
			t.Errorf("%q expires in %v", key, ttl)
		}
		if strings.Contains(key, "peeked") || strings.Contains(key, "refunded") {
			t.Errorf("%q was made for nothing", key)
		}
	}
	m.FastForward(4 * time.Hour)
	if left := m.Keys(); len(left) > 0 {
		t.Errorf("%q are left when everything has ended", left)
	}
}

// A key outlives the last of its windows by five seconds, so that no quota is
// granted twice when the clock steps back over the end of one.
func TestExpiry(t *testing.T) {
	m, c := mini(t)
	l := newLimiter(t, c)
	sec := func(s int) ratelimit.Quota { return ratelimit.Quota{Limit: 2, Window: time.Duration(s) * time.Second} }
	hour := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	for _, step := range []struct {
		what   string
		at     time.Duration // after the hour
		quotas []ratelimit.Quota
		want   time.Duration
	}{
		{"a new subject", 30 * time.Second, []ratelimit.Quota{sec(60)}, 35 * time.Second},
		{"a second request", 30 * time.Second, []ratelimit.Quota{sec(60)}, 35 * time.Second},
		{"a denied one", 30 * time.Second, []ratelimit.Quota{sec(60)}, 35 * time.Second},
		{"a denied one, which opens no longer window", 30 * time.Second, []ratelimit.Quota{sec(60), sec(3600)}, 35 * time.Second},
		{"the same beside a smooth quota", 30 * time.Second, []ratelimit.Quota{sec(60), sec(3600), sec(7).Smooth(1)}, 35 * time.Second},
		{"the next window", 70 * time.Second, []ratelimit.Quota{sec(60)}, 55 * time.Second},
		{"one more window", 75 * time.Second, []ratelimit.Quota{sec(60), sec(3600)}, 3600*time.Second - 70*time.Second},
		{"two windows, of which the shorter ends later", 2*time.Hour + 4*time.Second, []ratelimit.Quota{sec(4), sec(6)}, 9 * time.Second},
		{"the same of a subject with others", 2*time.Hour + 4*time.Second, []ratelimit.Quota{sec(4), sec(6), sec(7)}, 11 * time.Second},
	} {
		m.SetTime(hour.Add(step.at))
		_, err := l.Take(ctx, "a", ratelimit.MustPlan("", ratelimit.Penalty{}, step.quotas...), 1)
		must(t, err)
		if ttl := m.TTL(m.Keys()[0]); ttl != step.want {
			t.Errorf("%s: the key expires in %v, want %v", step.what, ttl, step.want)
		}
	}
}

// The index of bans forgets those that ended long ago.
func TestIndexIsPruned(t *testing.T) {
	m, c := mini(t)
	start := time.Date(2026, time.March, 1, 12, 0, 30, 0, time.UTC)
	m.SetTime(start)
	l := newLimiter(t, c)
	must(t, l.Ban(ctx, "0", time.Second, ""))
	i := slices.IndexFunc(m.Keys(), func(key string) bool { return strings.HasSuffix(key, "}") })
	index := m.Keys()[i]
	m.SetTime(start.Add(2 * time.Hour))
	for i := 1; ; i++ { // until one falls into the same index
		must(t, l.Ban(ctx, fmt.Sprint(i), time.Second, ""))
		if names, _ := m.ZMembers(index); len(names) != 1 || names[0] != "0" {
			if len(names) != 1 {
				t.Errorf("the index holds %q, want that the ban that ended is gone", names)
			}
			break
		}
	}
	if bans, err := l.Bans(ctx); err != nil || slices.ContainsFunc(bans, func(b ratelimit.Ban) bool { return b.Subject == "0" }) {
		t.Errorf("Bans: %v, %v, want not the one that ended", bans, err)
	}
}

// An index lasts as long as the longest of its bans, whichever was the last to begin.
func TestIndexOutlivesItsLongestBan(t *testing.T) {
	m, c := mini(t)
	l := newLimiter(t, c)
	subjects := redislimit.SubjectsOfOneIndex(2)
	for i, length := range []time.Duration{10 * time.Hour, time.Minute} {
		must(t, l.Ban(ctx, subjects[i], length, ""))
	}
	m.FastForward(9 * time.Hour)
	if bans, err := l.Bans(ctx); err != nil || !slices.ContainsFunc(bans, func(b ratelimit.Ban) bool { return b.Subject == subjects[0] }) {
		t.Errorf("Bans after nine hours of a ban of ten: %v, %v, want that it is listed", bans, err)
	}
}

// What ends a ban takes it out of the index, and leaves nothing.
func TestUnbanAndResetLeaveNothing(t *testing.T) {
	m, c := mini(t)
	l := newLimiter(t, c)
	for what, end := range map[string]func() error{
		"Unban": func() error { return second(l.Unban(ctx, "a")) },
		"Reset": func() error { return l.Reset(ctx, "a") },
	} {
		must(t, l.Ban(ctx, "a", time.Hour, ""))
		must(t, end())
		if keys := m.Keys(); len(keys) > 0 {
			t.Errorf("after %s: %q are left, want nothing", what, keys)
		}
	}
}

func second[T any](_ T, err error) error { return err }

// A key lasts as long as the windows, the buckets and the record of its subject: as the
// record also when a request was admitted after the ban in windows that end sooner.
func TestKeyOutlivesWhatItHolds(t *testing.T) {
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	penalty := ratelimit.Penalty{Strikes: 1, Decay: time.Hour, Ban: 10 * time.Second, Growth: 1, Max: 10 * time.Second, Forgive: 5 * time.Hour}
	patient := penalty
	patient.Strikes = 9
	plan := func(quotas ...ratelimit.Quota) *ratelimit.Plan { return ratelimit.MustPlan("", penalty, quotas...) }
	minute, two := plan(ratelimit.PerMinute(1)), plan(ratelimit.PerMinute(1), ratelimit.Quota{Limit: 1000, Window: 2 * time.Minute})
	minuteAndHour := ratelimit.MustPlan("", patient, ratelimit.PerMinute(1), ratelimit.PerHour(9))
	withBucket := ratelimit.MustPlan("", patient, ratelimit.PerMinute(1), ratelimit.PerHour(9), ratelimit.Quota{Limit: 9, Window: 10 * time.Second}.Smooth(9))
	smooth, buckets := plan(ratelimit.PerMinute(2).Smooth(1)), plan(ratelimit.PerMinute(60).Smooth(1), ratelimit.PerHour(2).Smooth(2))
	const allowed, limited = ratelimit.Allowed, ratelimit.Limited
	for name, test := range map[string]struct {
		before  *ratelimit.Plan
		seconds []int // after the start, of requests under before
		plan    *ratelimit.Plan
		at      int // the second of the last request
		want    ratelimit.Outcome
		until   time.Duration
	}{
		"a bucket":                                      {nil, nil, plan(ratelimit.PerHour(2).Smooth(1)), 1, allowed, time.Second + 30*time.Minute},
		"a window and a bucket":                         {nil, nil, plan(ratelimit.PerMinute(2).Smooth(1), ratelimit.PerHour(9)), 1, allowed, time.Hour},
		"two buckets":                                   {buckets, []int{1}, buckets, 3, allowed, time.Second + time.Hour},
		"buckets, a shorter later":                      {nil, nil, plan(ratelimit.PerMinute(2).Smooth(1), ratelimit.PerHour(3600).Smooth(9)), 1, allowed, 31 * time.Second},
		"a ban that was, and a bucket":                  {smooth, []int{1, 2, 3}, smooth, 62, allowed, 13*time.Second + 5*time.Hour},
		"a ban that was":                                {minute, []int{1, 2, 3}, minute, 60, allowed, 5 * time.Hour},
		"a ban that was, a minute later":                {two, []int{30, 30, 30, 30}, two, 90, allowed, 30*time.Second + 5*time.Hour},
		"a ban that was, two minutes later":             {two, []int{30, 30, 30, 30, 90}, two, 150, allowed, 30*time.Second + 5*time.Hour},
		"a ban that was, three minutes later":           {two, []int{30, 30, 30, 30, 90, 150}, two, 210, allowed, 30*time.Second + 5*time.Hour},
		"a strike in a longer window":                   {minute, []int{1}, minuteAndHour, 2, limited, time.Hour},
		"a strike in a longer window and a bucket":      {minute, []int{1}, withBucket, 2, limited, time.Hour},
		"a strike in a longer window, after a ban":      {minute, []int{1, 2, 3}, minuteAndHour, 20, limited, 5 * time.Hour},
		"a strike in the same window, after an earlier": {minute, []int{1, 2}, minuteAndHour, 3, limited, time.Hour},
	} {
		for group, take := range map[string]func(*redislimit.Limiter, *ratelimit.Plan) (ratelimit.Decision, error){
			"": func(l *redislimit.Limiter, plan *ratelimit.Plan) (ratelimit.Decision, error) {
				return l.Take(ctx, "a", plan, 1)
			},
			", in a group": func(l *redislimit.Limiter, plan *ratelimit.Plan) (ratelimit.Decision, error) {
				return takeGroup(l, "a", plan, lasting(100))
			},
		} {
			t.Run(name+group, func(t *testing.T) {
				m, c := mini(t)
				l := newLimiter(t, c)
				at := func(second int, plan *ratelimit.Plan) ratelimit.Decision {
					m.SetTime(start.Add(time.Duration(second) * time.Second))
					d, err := take(l, plan)
					must(t, err)
					return d
				}
				for _, second := range test.seconds {
					at(second, test.before)
				}
				if d := at(test.at, test.plan); d.Outcome != test.want {
					t.Fatalf("the last request is %v, want %v", d.Outcome, test.want)
				}
				if ttl, want := m.TTL(redislimit.Key(l, "a")), test.until-time.Duration(test.at)*time.Second; ttl < want {
					t.Errorf("the key lasts %v, want at least %v", ttl, want)
				}
			})
		}
	}
}

// takeGroup has a subject take a unit, together with another one under a plan of its own.
func takeGroup(l *redislimit.Limiter, subject string, plan, other *ratelimit.Plan) (ratelimit.Decision, error) {
	decisions := make([]ratelimit.Decision, 2)
	err := l.TakeAll(ctx, []ratelimit.Charge{{Subject: "other", Plan: other, Cost: 1}, {Subject: subject, Plan: plan, Cost: 1}}, decisions)
	return decisions[1], err
}

// The strikes of each subject of a call count until its own bucket is full.
func TestSmoothStrikesOfOneCall(t *testing.T) {
	t.Run("alone", func(t *testing.T) {
		testSmoothStrikesOfOneCall(t, func(l *redislimit.Limiter, plan *ratelimit.Plan) error {
			return redislimit.TakeAll(l, plan)([]string{"a", "b"})
		})
	})
	t.Run("in a group", func(t *testing.T) {
		testSmoothStrikesOfOneCall(t, func(l *redislimit.Limiter, plan *ratelimit.Plan) error {
			charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "b", Plan: plan, Cost: 1}}
			return l.TakeAll(ctx, charges, make([]ratelimit.Decision, 2))
		})
	})
}

func testSmoothStrikesOfOneCall(t *testing.T, strike func(*redislimit.Limiter, *ratelimit.Plan) error) {
	t.Helper()
	start := time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)
	m, c := mini(t)
	l := newLimiter(t, c)
	penalty := ratelimit.Penalty{Strikes: 9, Decay: 24 * time.Hour, Ban: time.Minute, Growth: 1, Max: time.Minute, Forgive: time.Minute}
	plan := ratelimit.MustPlan("", penalty, ratelimit.PerHour(4).Smooth(4))
	at := func(second int) { m.SetTime(start.Add(time.Duration(second) * time.Second)) }
	for subject, second := range map[string]int{"a": 1, "b": 600} { // full at 3601 and 4200
		at(second)
		if d, err := l.Take(ctx, subject, plan, 4); err != nil || !d.Allowed() {
			t.Fatal(d.Outcome, err)
		}
	}
	at(700)
	must(t, strike(l, plan))
	for _, test := range []struct {
		second  int
		subject string
		want    int
	}{{3600, "a", 8}, {3601, "a", 9}, {4199, "b", 8}, {4200, "b", 9}} {
		at(test.second)
		if d, err := l.Peek(ctx, test.subject, plan); err != nil || d.StrikesLeft != test.want {
			t.Errorf("after %d seconds %s has %d strikes left, %v, want %d", test.second, test.subject, d.StrikesLeft, err, test.want)
		}
	}
}
