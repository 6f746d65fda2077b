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

func TestAllocations(t *testing.T) {
	request, cancel := context.WithCancel(context.Background())
	defer cancel()
	for _, test := range []struct {
		name    string
		primary constant
		mode    fallback
		want    float64
	}{
		{"closed circuit", constant{d: decision(false)}, withLocal, 4}, // all of them by context.WithTimeout
		{"closed circuit, more than half used", constant{d: decision(true)}, withLocal, 4},
		{"closed circuit, context is waited on", constant{d: decision(false), done: true}, withLocal, 5}, // and its channel
		{"open circuit, local", constant{err: errDown}, withLocal, 0},
		{"open circuit, alone", constant{err: errDown}, alone, 0},
	} {
		opts := failover.Options{
			ConsecutiveFailures: 1, Backoff: time.Hour,
			Budget: time.Minute, // a machine that is busy is no fault
		}
		if test.mode == withLocal {
			opts.Local = newEngine(t)
		}
		l, err := failover.New(&test.primary, opts)
		must(t, err)
		defer l.Close()
		take := func() {
			_, err := l.Take(request, "owner-of-a-key-whose-name-is-0123456789abcdef", roomy, 1)
			if failed := err != nil; failed != (test.mode == alone) {
				t.Fatalf("%s: %v", test.name, err)
			}
		}
		take() // which may open the circuit
		if open := test.primary.err != nil; l.Open() != open {
			t.Fatalf("%s: the circuit is open: %v", test.name, l.Open())
		}
		if got := testing.AllocsPerRun(1000, take); got > test.want {
			t.Errorf("%s: %v allocations a decision, want at most %v", test.name, got, test.want)
		}
	}
}
