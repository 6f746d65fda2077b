package failover_test

import (
	"context"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

var roomy = ratelimit.MustPlan("roomy", ratelimit.DefaultPenalty(), ratelimit.PerMinute(fixedwindow.MaxUnits), ratelimit.PerDay(fixedwindow.MaxUnits))

// A constant is a primary that costs nothing.
type constant struct {
	d    ratelimit.Decision
	err  error
	done bool // it asks for the context's channel
}

func (c *constant) Adjust(context.Context, string, *ratelimit.Decision, int64, string) error {
	return c.err
}

func (c *constant) Take(ctx context.Context, _ string, _ *ratelimit.Plan, _ int64) (ratelimit.Decision, error) {
	if c.done {
		ctx.Done()
	}
	return c.d, c.err
}

// decision is what the primary says; heavy: more than half is used.
func decision(heavy bool) ratelimit.Decision {
	d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: roomy, Cost: 1}
	for i := range engine.Of(roomy).Len() {
		d.States[i] = ratelimit.State{Remaining: fixedwindow.MaxUnits - 1, Reset: 1 << 33}
		if heavy {
			d.States[i].Remaining = 1
		}
	}
	return d
}

// cases are the paths of a request.
func cases(t *testing.T) map[string]func() {
	limiter := func(primary ratelimit.Limiter, mode fallback) *failover.Limiter {
		opts := failover.Options{
			ConsecutiveFailures: 1, Backoff: time.Hour,
			Budget: time.Minute, // a machine that is busy is no fault
		}
		if mode == withLocal {
			opts.Local = newEngine(t)
		}
		l, err := failover.New(primary, opts)
		must(t, err)
		t.Cleanup(func() { l.Close() })
		return l
	}
	request, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	take := func(l *failover.Limiter, mayFail bool) func() {
		return func() {
			if _, err := l.Take(request, "owner-of-a-key-whose-name-is-0123456789abcdef", roomy, 1); err != nil && !mayFail {
				t.Fatal(err)
			}
		}
	}
	open := func(mode fallback) *failover.Limiter {
		l := limiter(&constant{err: errDown}, mode)
		take(l, true)()
		if !l.Open() {
			t.Fatal("the circuit is not open")
		}
		return l
	}
	return map[string]func(){
		"closed circuit":                       take(limiter(&constant{d: decision(false)}, withLocal), false),
		"closed circuit, more than half used":  take(limiter(&constant{d: decision(true)}, withLocal), false),
		"closed circuit, context is waited on": take(limiter(&constant{d: decision(false), done: true}, withLocal), false),
		"open circuit, local":                  take(open(withLocal), false),
		"open circuit, alone":                  take(open(alone), true),
	}
}

func TestAllocations(t *testing.T) {
	take := cases(t)
	for _, test := range []struct {
		name string
		want float64
	}{
		{"closed circuit", 4}, // all of them by context.WithTimeout
		{"closed circuit, more than half used", 4},
		{"closed circuit, context is waited on", 5}, // and its channel
		{"open circuit, local", 0},
		{"open circuit, alone", 0},
	} {
		if got := testing.AllocsPerRun(1000, take[test.name]); got > test.want {
			t.Errorf("%s: %v allocations a decision, want at most %v", test.name, got, test.want)
		}
	}
}
