package ululelimit_test

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/ulule/limiter/v3"
	"github.com/ulule/limiter/v3/drivers/store/tests"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/ululelimit"
)

var perMinute = limiter.Rate{Limit: 3, Period: time.Minute}

// ulule's tests of its own stores. They run where time stands still, so that no
// window ends in the middle.
func TestUlule(t *testing.T) {
	for name, run := range map[string]func(*testing.T, limiter.Store){
		"sequential access": tests.TestStoreSequentialAccess, "concurrent access": tests.TestStoreConcurrentAccess,
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { run(t, newStore(t, newMemory(t), ululelimit.StoreOptions{})) })
		})
	}
}

// Whatever is done, ulule's own store in memory would have shown the same.
func TestShowsWhatUluleShows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // at midnight: rolling windows begin with those of the calendar
		for seed := range uint64(300) {
			random := rand.New(rand.NewPCG(seed, 0))
			ours, theirs := newStore(t, newMemory(t), ululelimit.StoreOptions{}), inMemory()
			rate := limiter.Rate{Limit: random.Int64N(8), Period: time.Minute}
			log := fmt.Sprintf("limit %d", rate.Limit)
			for range 40 {
				key := string(rune('a' + random.IntN(2)))
				do := func(s limiter.Store) (limiter.Context, error) { return s.Get(ctx, key, rate) }
				switch n := random.IntN(20); {
				case n < 5:
					log += ", peek " + key
					do = func(s limiter.Store) (limiter.Context, error) { return s.Peek(ctx, key, rate) }
				case n < 6:
					log += ", reset " + key
					do = func(s limiter.Store) (limiter.Context, error) { return s.Reset(ctx, key, rate) }
				case n < 12:
					count := random.Int64N(2 * (rate.Limit + 1))
					log += fmt.Sprint(", increment ", key, " by ", count)
					do = func(s limiter.Store) (limiter.Context, error) { return s.Increment(ctx, key, count, rate) }
				default:
					log += ", get " + key
				}
				want, _ := do(theirs)
				got, err := do(ours)
				if err != nil {
					t.Fatalf("%s: %v", log, err)
				}
				if diff := cmp.Diff(want, got); diff != "" {
					t.Fatalf("%s: ulule (-), ours (+):\n%s", log, diff)
				}
			}
		}
	})
}

func TestNegativeIncrement(t *testing.T) {
	s := newStore(t, newMemory(t), ululelimit.StoreOptions{})
	rate := limiter.Rate{Limit: 3, Period: fixedwindow.MaxLength}
	for _, step := range []struct {
		count     int64
		remaining int64
		reached   bool
	}{
		{2, 1, false},
		{-1, 2, false},
		{-100, 3, false},
		{math.MinInt64, 3, false},
		{math.MaxInt64, 0, true},
		{-1, 0, false},
		{-1, 1, false},
	} {
		got := testcheck.Must(s.Increment(ctx, "a", step.count, rate))
		if got.Remaining != step.remaining || got.Reached != step.reached {
			t.Errorf("increment by %d: got %d remaining, reached %v, want %d, %v", step.count, got.Remaining, got.Reached, step.remaining, step.reached)
		}
	}
}

func TestPeriodsAreApart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newStore(t, newMemory(t), ululelimit.StoreOptions{})
		perDay := limiter.Rate{Limit: 100, Period: 24 * time.Hour}
		for range 5 {
			s.Get(ctx, "a", perMinute)
			s.Get(ctx, "a", perDay)
		}
		time.Sleep(time.Minute)
		minute, _ := s.Get(ctx, "a", perMinute)
		day, _ := s.Get(ctx, "a", perDay)
		if minute.Remaining != 2 || minute.Reached || day.Remaining != 94 {
			t.Errorf("in the second minute: got %+v of the minute and %+v of the day, want 2 and 94 remaining", minute, day)
		}
		if want := time.Now().Truncate(24 * time.Hour).Add(24 * time.Hour).Unix(); day.Reset != want {
			t.Errorf("the day resets at %d, want midnight, %d", day.Reset, want)
		}
	})
}

func TestPrefix(t *testing.T) {
	engine := newMemory(t)
	s := newStore(t, engine, ululelimit.StoreOptions{Prefix: "network:"})
	for _, subject := range []string{"192.0.2.1", "60:192.0.2.1", "network:192.0.2.1", "network:60:192.0.2.1"} {
		must(t, engine.Ban(ctx, subject, time.Hour, ""))
		got, err := s.Get(ctx, "192.0.2.1", perMinute)
		if want := strings.HasPrefix(subject, "network:60:"); err != nil || got.Reached != want {
			t.Errorf("with %q banned: got reached %v, %v, want %v", subject, got.Reached, err, want)
		}
	}
}

func TestPenalty(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		penalty := ratelimit.Penalty{Strikes: 2, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
		s := newStore(t, newMemory(t), ululelimit.StoreOptions{Penalty: penalty})
		var last limiter.Context
		for range 3 + 1 + 2 { // the limit, the first denied one, the strikes before a ban
			last, _ = s.Get(ctx, "a", perMinute)
		}
		if wait := last.Reset - time.Now().Unix(); !last.Reached || wait != 60 {
			t.Errorf("the last strike before a ban: got %+v, %d s from now, want Reached until the minute ends", last, wait)
		}
		last, _ = s.Get(ctx, "a", perMinute)
		if wait := last.Reset - time.Now().Unix(); !last.Reached || last.Remaining != 0 || wait != 3600 {
			t.Errorf("one strike too many: got %+v, %d s from now, want Reached until the ban ends", last, wait)
		}
		time.Sleep(time.Minute)
		if got, _ := s.Peek(ctx, "a", perMinute); !got.Reached || got.Remaining != 0 {
			t.Errorf("a peek in the next minute: got %+v, want Reached: the ban is in force", got)
		}
		if got, _ := s.Reset(ctx, "a", perMinute); got.Reached || got.Remaining != 3 {
			t.Errorf("after a reset: got %+v, want all 3 remaining", got)
		}
	})
}

func TestRates(t *testing.T) {
	s := newStore(t, newMemory(t), ululelimit.StoreOptions{})
	for _, test := range []struct {
		name string
		rate limiter.Rate
		ok   bool
	}{
		{"nothing is allowed", limiter.Rate{Limit: 0, Period: time.Minute}, true},
		{"as many as can be", limiter.Rate{Limit: fixedwindow.MaxUnits - 1, Period: time.Minute}, true},
		{"too many", limiter.Rate{Limit: fixedwindow.MaxUnits, Period: time.Minute}, false},
		{"far too many", limiter.Rate{Limit: math.MaxInt64, Period: time.Minute}, false},
		{"a negative limit", limiter.Rate{Limit: -1, Period: time.Minute}, false},
		{"no period", limiter.Rate{Limit: 1}, false},
		{"half a second", limiter.Rate{Limit: 1, Period: time.Second / 2}, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			_, getErr := s.Get(ctx, "a", test.rate)
			_, peekErr := s.Peek(ctx, "a", test.rate)
			_, resetErr := s.Reset(ctx, "a", test.rate)
			_, incrementErr := s.Increment(ctx, "a", 1, test.rate)
			for name, err := range map[string]error{"Get": getErr, "Peek": peekErr, "Reset": resetErr, "Increment": incrementErr} {
				if (err == nil) != test.ok || err != nil && !errors.Is(err, ratelimit.ErrInvalid) {
					t.Errorf("%s: got error %v, want one that wraps ErrInvalid: %v", name, err, !test.ok)
				}
			}
		})
	}
}

func TestNewStoreRefuses(t *testing.T) {
	for _, engine := range []ratelimit.Limiter{nil, (*memory.Limiter)(nil), &memory.Limiter{}, struct{ ratelimit.Limiter }{newMemory(t)}} {
		if _, err := ululelimit.NewStore(engine, ululelimit.StoreOptions{}); err == nil || !strings.Contains(err.Error(), "NewStore needs an engine with Take, Peek and Reset") {
			t.Errorf("a nil %T: got error %v", engine, err)
		}
	}
	_, err := ululelimit.NewStore(newMemory(t), ululelimit.StoreOptions{Penalty: ratelimit.Penalty{Strikes: 3}})
	if err == nil || !strings.HasPrefix(err.Error(), "ululelimit: StoreOptions.Penalty: ") {
		t.Errorf("a penalty without a ban: got error %v", err)
	}
}

func TestEngineWithoutAdjust(t *testing.T) {
	s := newStore(t, newLimiter(t, inMemory()), ululelimit.StoreOptions{})
	if got, err := s.Increment(ctx, "a", 2, perMinute); err != nil || got.Remaining != 1 {
		t.Errorf("Increment by 2: got %+v, %v, want 1 remaining", got, err)
	}
	if _, err := s.Increment(ctx, "a", -1, perMinute); !errors.Is(err, errors.ErrUnsupported) || !strings.Contains(err.Error(), "no Adjust") {
		t.Errorf("Increment by -1: got error %v, want one that wraps ErrUnsupported and says what is missing", err)
	}
}

func TestEngineFails(t *testing.T) {
	engine := newLimiter(t, answering{err: errors.New("connection refused")})
	s := newStore(t, engine, ululelimit.StoreOptions{})
	_, getErr := s.Get(ctx, "a", perMinute)
	_, peekErr := s.Peek(ctx, "a", perMinute)
	_, resetErr := s.Reset(ctx, "a", perMinute)
	_, incrementErr := s.Increment(ctx, "a", 5, perMinute)
	for name, err := range map[string]error{"get": getErr, "peek": peekErr, "reset": resetErr, "increment": incrementErr} {
		if !errors.Is(err, ratelimit.ErrUnavailable) || !strings.HasPrefix(err.Error(), "ululelimit: "+name+": ") {
			t.Errorf("%s: got error %v, want one that wraps the engine's and says what was being done", name, err)
		}
	}
}
