package ratelimit_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

func TestNewPlanRefuses(t *testing.T) {
	const seconds = "must be whole seconds from 1s to 8784h, got "
	const longest = "Penalty.Max must be whole seconds from Penalty.Ban (1m) to 8784h, got "
	const grace = "Penalty.Grace must be whole milliseconds from 0s to 1h, got "
	too := fixedwindow.MaxLength + time.Second
	for want, change := range map[string]func(*ratelimit.Penalty){
		"Penalty.Strikes must be from 1 to 10000, got 0; only the zero Penalty, which never bans, has 0": func(p *ratelimit.Penalty) { p.Strikes = 0 },
		"Penalty.Strikes must be from 1 to 10000, got 10001":                                             func(p *ratelimit.Penalty) { p.Strikes = 10_001 },
		grace + "-1ns":                                  func(p *ratelimit.Penalty) { p.Grace = -1 },
		grace + "1µs":                                   func(p *ratelimit.Penalty) { p.Grace = time.Microsecond },
		grace + "1h0m0.001s":                            func(p *ratelimit.Penalty) { p.Grace = time.Hour + time.Millisecond },
		"Penalty.Decay " + seconds + "-1s":              func(p *ratelimit.Penalty) { p.Decay = -time.Second },
		"Penalty.Decay " + seconds + "1.5s":             func(p *ratelimit.Penalty) { p.Decay = 1500 * time.Millisecond },
		"Penalty.Decay " + seconds + "8784h0m1s":        func(p *ratelimit.Penalty) { p.Decay = too },
		"Penalty.Ban " + seconds + "0s":                 func(p *ratelimit.Penalty) { p.Ban = 0 },
		"Penalty.Ban " + seconds + "1.5s":               func(p *ratelimit.Penalty) { p.Ban = 1500 * time.Millisecond },
		"Penalty.Ban " + seconds + "8784h0m1s":          func(p *ratelimit.Penalty) { p.Ban = too },
		"Penalty.Growth must be from 1 to 100, got 101": func(p *ratelimit.Penalty) { p.Growth = 101 },
		"Penalty.Growth must be from 1 to 100, got 0":   func(p *ratelimit.Penalty) { p.Growth = 0 },
		longest + "1s":                                  func(p *ratelimit.Penalty) { p.Max = time.Second },
		longest + "24h0m0.001s":                         func(p *ratelimit.Penalty) { p.Max += time.Millisecond },
		longest + "8784h0m1s":                           func(p *ratelimit.Penalty) { p.Max = too },
		"Penalty.Forgive " + seconds + "8784h0m1s":      func(p *ratelimit.Penalty) { p.Forgive = too },
		"Penalty.Forgive " + seconds + "0s":             func(p *ratelimit.Penalty) { p.Forgive = 0 },
	} {
		penalty := ratelimit.DefaultPenalty()
		change(&penalty)
		_, err := ratelimit.NewPlan("free", penalty, ratelimit.PerMinute(60))
		if want := `ratelimit: plan "free": ` + want; err == nil || err.Error() != want {
			t.Errorf("got error %v, want %s", err, want)
		}
	}

	minute, day, month := ratelimit.PerMinute(60), ratelimit.PerDay(8).In(time.UTC), ratelimit.PerMonth(9)
	changed := month
	changed.Window = time.Hour
	for want, quotas := range map[string][]ratelimit.Quota{
		"a plan must have 1 to 4 quotas, got 0":                                          nil,
		"a plan must have 1 to 4 quotas, got 5":                                          {minute, day, ratelimit.PerHour(1), ratelimit.PerSecond(1), {Limit: 1, Window: 2 * time.Second}},
		"quota 2: Quota.Limit must be from 1 to 9007199254740991, got 0":                 {minute, {Window: time.Hour}},
		"quota 2: Quota.Window " + seconds + "1.5s":                                      {minute, {Limit: 1, Window: 1500 * time.Millisecond}},
		"quota 2: a second quota with the window 1m; each must have a window of its own": {minute, ratelimit.PerMinute(7)},
		"a second smooth quota with the window 1m;":                                      {minute.Smooth(10), ratelimit.PerMinute(90).Smooth(9)},
		"a second quota with the window month":                                           {month, ratelimit.PerMonth(7).From(9)},
		"a second quota with the window day in a z":                                      {day, ratelimit.PerDay(7).In(location(t, "Asia/Tokyo"))},
		"windows of fixed lengths only":                                                  {ratelimit.PerDay(60).Smooth(6).In(time.UTC)},
		"Quota.Smooth is not for soft quotas":                                            {ratelimit.PerMinute(60).Soft().Smooth(10)},
		"Quota.From is for PerMonth only":                                                {ratelimit.PerDay(5).From(3)},
		"Quota.From must be a day from 1 to 31, got 0":                                   {ratelimit.PerMonth(5).From(0)},
		"Quota.In is for PerDay and PerMonth only":                                       {ratelimit.PerHour(5).In(time.UTC)},
		"Quota.In must be a location, got nil":                                           {ratelimit.PerMonth(5).In(nil)},
		"Quota.Window of 1h is reserved":                                                 {changed},
		"Quota.Window of 768h0m1s is reserved":                                           {{Limit: 5, Window: month.Window}},
	} {
		_, err := ratelimit.NewPlan("free", ratelimit.Penalty{}, quotas...)
		if err == nil || !strings.HasPrefix(err.Error(), `ratelimit: plan "free": `) || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: got error %v, want one that says %s", quotas, err, want)
		}
	}
	defer func() {
		if recover() == nil {
			t.Error("MustPlan made a plan without quotas")
		}
	}()
	ratelimit.MustPlan("free", ratelimit.Penalty{})
}

func TestNewPlanTakesTheBounds(t *testing.T) {
	largest := ratelimit.Penalty{
		Strikes: 10_000, Grace: time.Hour, Decay: fixedwindow.MaxLength,
		Ban: fixedwindow.MaxLength, Growth: 100, Max: fixedwindow.MaxLength, Forgive: fixedwindow.MaxLength,
	}
	smallest := ratelimit.Penalty{
		Strikes: 1, Decay: time.Second, Ban: time.Second, Growth: 1, Max: time.Second, Forgive: time.Second,
	}
	for _, penalty := range []ratelimit.Penalty{smallest, largest} {
		if _, err := ratelimit.NewPlan("", penalty, ratelimit.Quota{Limit: fixedwindow.MaxUnits, Window: fixedwindow.MaxLength}); err != nil {
			t.Error(err)
		}
	}
}

func TestPlanOrdersQuotas(t *testing.T) {
	quotas := []ratelimit.Quota{ratelimit.PerDay(1000), ratelimit.PerMinute(60)}
	p := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), quotas...)
	quotas[0] = ratelimit.PerDay(1)
	want := []ratelimit.Quota{ratelimit.PerMinute(60), ratelimit.PerDay(1000)}
	if diff := cmp.Diff(want, p.Quotas(), cmp.Comparer(func(a, b ratelimit.Quota) bool { return a == b })); diff != "" {
		t.Errorf("quotas in order of their windows, and a copy of what was passed (-want +got):\n%s", diff)
	}
	p.Quotas()[0].Limit = 1
	if got := engine.Of(p).Quota(0); got != want[0] {
		t.Errorf("a plan was changed through Quotas: %v", got)
	}
	if got := p.String(); got != "free [60/minute 1000/day]" {
		t.Errorf("String: %q", got)
	}
}

// A service may make a plan for each request, from the quotas of its customer.
func TestNewPlanAllocatesLittle(t *testing.T) {
	quotas := []ratelimit.Quota{ratelimit.PerDay(100_000), ratelimit.PerMinute(1000)}
	if n := testing.AllocsPerRun(100, func() {
		_, err := ratelimit.NewPlan("pro", ratelimit.DefaultPenalty(), quotas...)
		must(t, err)
	}); n > 1 {
		t.Errorf("NewPlan allocates %v times, want 1", n)
	}
}

// All calls return one plan, concurrent ones too.
func TestWithoutPenalty(t *testing.T) {
	p := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60))
	made := make(chan *ratelimit.Plan)
	const callers = 8
	for range callers {
		go func() { made <- p.WithoutPenalty() }()
	}
	without := <-made
	for range callers - 1 {
		if <-made != without {
			t.Error("concurrent calls of WithoutPenalty returned different plans")
		}
	}
	if without.Penalty() != (ratelimit.Penalty{}) || without.String() != p.String() || without.WithoutPenalty() != without {
		t.Errorf("got %v with %+v, want the same quotas and no penalty", without, without.Penalty())
	}
	if p.Penalty() != ratelimit.DefaultPenalty() {
		t.Errorf("the plan itself lost its penalty: %+v", p.Penalty())
	}
}

// A scope changes nothing else of a plan, and stays without the penalty.
func TestWithScope(t *testing.T) {
	p := ratelimit.MustPlan("team", ratelimit.DefaultPenalty(), ratelimit.PerMinute(5), ratelimit.PerDay(50).Smooth(7))
	for _, scope := range []string{"organisation", "API key", "team-7", "x", strings.Repeat("a", 40), ""} {
		scoped := p.WithScope(scope)
		if scoped.Scope() != scope || scoped.WithoutPenalty().Scope() != scope || p.Scope() != "" {
			t.Errorf("scopes %q, %q without penalty, %q of the first plan; want %q twice and none",
				scoped.Scope(), scoped.WithoutPenalty().Scope(), p.Scope(), scope)
		}
		if scoped.String() != p.String() || scoped.Penalty() != p.Penalty() {
			t.Errorf("with the scope %q: got %v with %+v, want %v with %+v", scope, scoped, scoped.Penalty(), p, p.Penalty())
		}
	}
	for _, p := range []*ratelimit.Plan{ratelimit.SuspendedPlan("debtor"), ratelimit.UnlimitedPlan("tester")} {
		if got := p.WithScope("team"); got.Scope() != "team" || got.String() != p.String() {
			t.Errorf("%v with a scope: got %v, %q", p, got, got.Scope())
		}
	}
	if _, err := engine.Decide("a", new(ratelimit.Plan).WithScope("team"), 1); !errors.Is(err, ratelimit.ErrInvalid) {
		t.Errorf("the zero Plan with a scope: error %v, want ErrInvalid", err)
	}
	for _, scope := range []string{" ", "team ", "-team", "ein größeres Team", "a\"b", "a.b", "a\n", strings.Repeat("a", 41)} {
		func() {
			defer func() {
				want := fmt.Sprintf(`ratelimit: plan "team": the scope must be 1 to 40 ASCII letters, digits, spaces and hyphens, `+
					`with a letter or digit at both ends, got %q`, scope)
				if err, _ := recover().(error); err == nil || err.Error() != want {
					t.Errorf("WithScope(%q) panicked with %v, want %s", scope, err, want)
				}
			}()
			p.WithScope(scope)
		}()
	}
}

func TestNextBan(t *testing.T) {
	p := ratelimit.DefaultPenalty()
	const hour = time.Hour
	for _, test := range []struct {
		last   int
		quiet  time.Duration
		level  int
		length time.Duration
	}{
		{0, 0, 1, time.Minute},
		{-1, 0, 1, time.Minute},
		{0, 10000 * hour, 1, time.Minute},
		{1, hour, 2, 2 * time.Minute},
		{3, 24*hour - 1, 4, 8 * time.Minute},
		{3, 24 * hour, 3, 4 * time.Minute},
		{3, 48 * hour, 2, 2 * time.Minute},
		{3, 1000 * hour, 1, time.Minute},
		{3, -hour, 4, 8 * time.Minute},
		{10, 0, 11, 1024 * time.Minute},
		{11, 0, 12, 24 * hour},
		{255, 0, 255, 24 * hour},
	} {
		if level, length := engine.Penalty(p).NextBan(test.last, test.quiet); level != test.level || length != test.length {
			t.Errorf("a ban %v after one of level %d: level %d for %v, want %d for %v", test.quiet, test.last, level, length, test.level, test.length)
		}
	}
	p.Growth = 1
	if _, got := engine.Penalty(p).NextBan(254, 0); got != time.Minute {
		t.Errorf("without growth: %v, want 1m", got)
	}
}
