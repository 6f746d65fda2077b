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

// What ends a ban takes it out of the index, and leaves a note that nothing was lost.
func TestUnbanAndResetLeaveANote(t *testing.T) {
	m, c := mini(t)
	l := newLimiter(t, c)
	for what, end := range map[string]func() error{
		"Unban": func() error { return second(l.Unban(ctx, "a")) },
		"Reset": func() error { return l.Reset(ctx, "a") },
	} {
		must(t, l.Ban(ctx, "a", time.Hour, ""))
		must(t, end())
		if keys := m.Keys(); len(keys) != 1 || !strings.Contains(keys[0], "!") {
			t.Errorf("after %s: %q are left, want a note", what, keys)
		}
	}
}

func second[T any](_ T, err error) error { return err }
