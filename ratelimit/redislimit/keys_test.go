package redislimit_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
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
		{redis.NewRing(&redis.RingOptions{}), redislimit.Options{}, "redislimit: New needs a Client or a ClusterClient, got a Ring: when one of its servers is down, quotas begin anew on another one; use a cluster"},
	} {
		if _, err := redislimit.New(test.client, test.options); fmt.Sprint(err) != test.want {
			t.Errorf("New with %T and %+v: got error %q, want %q", test.client, test.options, err, test.want)
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
	if bans, err := l.Bans(ctx); err != nil || slices.ContainsFunc(bans, func(b engine.Ban) bool { return b.Subject == "0" }) {
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
	if bans, err := l.Bans(ctx); err != nil || !slices.ContainsFunc(bans, func(b engine.Ban) bool { return b.Subject == subjects[0] }) {
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

// A denial is remembered as long as the windows of its plan last, also of those that nothing
// was charged to.
func TestKeyOutlivesADenial(t *testing.T) {
	m, c := mini(t)
	m.SetTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))
	l := newLimiter(t, c)
	for _, quotas := range [][]ratelimit.Quota{{ratelimit.PerMinute(1)}, {ratelimit.PerMinute(1), ratelimit.PerHour(9)}} {
		_, err := l.Take(ctx, "a", ratelimit.MustPlan("", ratelimit.DefaultPenalty(), quotas...), 1)
		must(t, err)
	}
	if ttl := m.TTL(redislimit.Key(l, "a")); ttl != time.Hour+5*time.Second {
		t.Errorf("the key lasts %v, want the hour of the plan that refused, and five seconds", ttl)
	}
	penalty := ratelimit.Penalty{Strikes: 1, Ban: time.Second, Growth: 2, Max: time.Hour, Forgive: 24 * time.Hour}
	one := ratelimit.MustPlan("", penalty, ratelimit.PerMinute(1))
	two := ratelimit.MustPlan("", penalty, ratelimit.PerMinute(1), ratelimit.PerHour(9))
	for i, plan := range []*ratelimit.Plan{one, one, one, two} { // admitted, a strike, a ban, and when that has ended a strike
		m.SetTime(time.Date(2026, time.March, 1, 12, 0, 2*i, 0, time.UTC))
		_, err := l.Take(ctx, "b", plan, 1)
		must(t, err)
	}
	if ttl := m.TTL(redislimit.Key(l, "b")); ttl < 24*time.Hour {
		t.Errorf("the key lasts %v, want at least until the ban is forgiven", ttl)
	}
}

// takeGroup has a subject take a unit, together with another one under a plan of its own.
func takeGroup(l *redislimit.Limiter, subject string, plan, other *ratelimit.Plan) (ratelimit.Decision, error) {
	decisions := make([]ratelimit.Decision, 2)
	err := l.TakeAll(ctx, []ratelimit.Charge{{Subject: "other", Plan: other, Cost: 1}, {Subject: subject, Plan: plan, Cost: 1}}, decisions)
	return decisions[1], err
}
