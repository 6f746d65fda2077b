package redisrate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/go-redis/redis_rate/v10"
	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/redisrate"
)

func TestPlansThatCannotBeDecided(t *testing.T) {
	const most = 100_000 * int64(fixedwindow.MaxLength/time.Second)
	overAnInt := "" // an int of 64 bits holds every limit
	if math.MaxInt < most {
		overAnInt = "a limit of at most"
	}
	f := newFixture(t, redisrate.Options{Windows: []time.Duration{time.Second, fixedwindow.MaxLength}})
	for _, test := range []struct {
		name string
		plan *ratelimit.Plan
		want string // "": it can be decided
	}{
		{"one quota", plan(ratelimit.PerSecond(1)), ""},
		{"as fast as can be", plan(ratelimit.PerSecond(100_000)), ""},
		{"as many as can be", plan(ratelimit.Quota{Limit: min(most, math.MaxInt), Window: fixedwindow.MaxLength}), ""},
		{"no plan", nil, "no plan"},
		{"two quotas", plan(ratelimit.PerSecond(1), ratelimit.PerMinute(10)), "a plan with 1 quota, got 2"},
		{"another window", plan(ratelimit.PerMinute(10)), "Options.Windows"},
		{"a calendar window", plan(ratelimit.PerMonth(10)), "cannot count in calendar windows"},
		{"a soft quota", plan(ratelimit.PerSecond(10).Soft()), "cannot count soft quotas"},
		{"too fast", plan(ratelimit.PerSecond(100_001)), "at most 100000 units a second"},
		{"over an int", plan(ratelimit.Quota{Limit: most, Window: fixedwindow.MaxLength}), overAnInt},
	} {
		t.Run(test.name, func(t *testing.T) {
			ctx := context.Background()
			_, takeErr := f.Take(ctx, "a", test.plan, 1)
			_, peekErr := f.Peek(ctx, "a", test.plan)
			for name, err := range map[string]error{"Take": takeErr, "Peek": peekErr} {
				switch {
				case test.want == "" && err != nil:
					t.Errorf("%s: %v", name, err)
				case test.want != "" && (!errors.Is(err, ratelimit.ErrInvalid) || !strings.Contains(err.Error(), test.want)):
					t.Errorf("%s: got error %v, want one that wraps ErrInvalid and says %q", name, err, test.want)
				}
			}
		})
	}
}

func TestUnavailable(t *testing.T) {
	canceled, cancel := context.WithCancel(context.Background())
	cancel()
	for _, test := range []struct {
		name     string
		ctx      context.Context
		sabotage func(*fixture)
		want     error // beside ErrUnavailable
	}{
		{"Redis answers with an error", context.Background(), func(f *fixture) { f.server.SetError("LOADING Redis is loading the dataset in memory") }, nil},
		{"Redis is down", context.Background(), func(f *fixture) { f.server.Close() }, nil},
		{"something else has written the key", context.Background(), func(f *fixture) { f.server.Set("rate:gatehouse:{a}:60", "text") }, nil},
		{"the caller has cancelled", canceled, func(*fixture) {}, context.Canceled},
	} {
		t.Run(test.name, func(t *testing.T) {
			f := newFixture(t, redisrate.Options{})
			test.sabotage(f)
			p := plan(ratelimit.PerMinute(10))
			_, takeErr := f.Take(test.ctx, "a", p, 1)
			_, peekErr := f.Peek(test.ctx, "a", p)
			for name, err := range map[string]error{"Take": takeErr, "Peek": peekErr} {
				if !errors.Is(err, ratelimit.ErrUnavailable) || errors.Is(err, ratelimit.ErrInvalid) || test.want != nil && !errors.Is(err, test.want) {
					t.Errorf("%s: got error %v, want one that wraps ErrUnavailable and %v", name, err, test.want)
				}
			}
		})
	}
	f := newFixture(t, redisrate.Options{})
	f.server.Close()
	if err := f.Reset(context.Background(), "a"); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("Reset: got error %v, want one that wraps ErrUnavailable", err)
	}
}

func TestNewRefuses(t *testing.T) {
	rate := new(redis_rate.Limiter)
	for _, test := range []struct {
		name string
		rate *redis_rate.Limiter
		opts redisrate.Options
		want string
	}{
		{"no limiter", nil, redisrate.Options{}, "redisrate: New needs a redis_rate.Limiter, got nil"},
		{"a window of half a second", rate, redisrate.Options{Windows: []time.Duration{time.Second / 2}},
			"redisrate: Options.Windows must be whole seconds from 1s to 8784h, got 500ms"},
		{"a window of no length", rate, redisrate.Options{Windows: []time.Duration{0}},
			"redisrate: Options.Windows must be whole seconds from 1s to 8784h, got 0s"},
		{"a window that is too long", rate, redisrate.Options{Windows: []time.Duration{fixedwindow.MaxLength + time.Second}},
			"redisrate: Options.Windows must be whole seconds from 1s to 8784h, got 8784h0m1s"},
		{"an opening brace in the prefix", rate, redisrate.Options{Prefix: "{shop"}, `redisrate: Options.Prefix must have no braces, got "{shop"`},
		{"a closing brace in the prefix", rate, redisrate.Options{Prefix: "shop}"}, `redisrate: Options.Prefix must have no braces, got "shop}"`},
	} {
		if _, err := redisrate.New(test.rate, test.opts); fmt.Sprint(err) != test.want {
			t.Errorf("%s: got error %v, want %s", test.name, err, test.want)
		}
	}
}

// The package documentation says so: with ContextTimeoutEnabled a call returns at the
// deadline of its context, whatever the timeouts of the client are.
func TestReturnsAtTheDeadline(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0") // accepts, and does not answer
	must(t, err)
	defer silent.Close()
	c := redis.NewClient(&redis.Options{
		Addr: silent.Addr().String(), ContextTimeoutEnabled: true, MaxRetries: -1, ReadTimeout: time.Hour,
	})
	defer c.Close()
	l, err := redisrate.New(redis_rate.NewLimiter(c), redisrate.Options{})
	must(t, err)
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	if _, err := l.Take(ctx, "a", plan(ratelimit.PerMinute(1)), 1); !errors.Is(err, ratelimit.ErrUnavailable) {
		t.Errorf("Take from a server that does not answer: got error %v, want one that wraps ErrUnavailable", err)
	}
}
