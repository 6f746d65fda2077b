package rpclimit

import (
	"context"
	"errors"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// ann is the caller of most tests.
var (
	ten = ratelimit.MustPlan("ten", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	ann = ratelimit.Caller{Subject: "ann", Plan: ten}
)

func newGate(opts Options) *Gate {
	at := time.Date(2026, 11, 22, 12, 0, 43, 0, time.UTC)
	engine := must(memory.New(memory.Options{Now: func() time.Time { return at }}))
	return must(New("test", engine, nobody, opts, func(error) bool { return false }))
}

func nobody(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, nil }

// open decides a call of a caller.
func open(ctx context.Context, g *Gate, c ratelimit.Caller, err error) *Call {
	g.identify = func(*http.Request) (ratelimit.Caller, error) { return c, err }
	return g.Open(Request(ctx, "/test.Echo/Unary", nil, ""))
}

// The error names the adapter, and comes before the first call.
func TestNewChecksItsArguments(t *testing.T) {
	engine := must(memory.New(memory.Options{}))
	bare := struct{ ratelimit.Limiter }{engine}
	for want, c := range map[string]struct {
		limiter  ratelimit.Limiter
		identify Identify
		opts     Options
	}{
		"test: the limiter must not be nil": {(*memory.Limiter)(nil), nobody, Options{}},
		"test: identify must not be nil":    {engine, nil, Options{}},
		"test: limit: Options.ChargeIf needs a limiter that is an Adjuster, got struct { ratelimit.Limiter }": {bare, nobody, Options{ChargeIf: func(*http.Request, error) bool { return true }}},
	} {
		if _, err := New("test", c.limiter, c.identify, c.opts, nil); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Of several quotas those are violated that have too little left. The minute has just
// enough.
func TestViolations(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(2), ratelimit.PerHour(1), ratelimit.PerDay(1))
	g, c := newGate(Options{}), ratelimit.Caller{Subject: "ann", Plan: plan}
	open(t.Context(), g, c, nil)
	want := []Violation{{"hour", "1/hour", 1}, {"day", "1/day", 1}}
	if diff := cmp.Diff(want, open(t.Context(), g, c, nil).Denial.Violations); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// The text names the first quota that the cost is over, not one that it is equal to. A
// smooth quota bounds a cost by its burst.
func TestTooExpensiveNamesTheQuota(t *testing.T) {
	g := newGate(Options{Cost: func(*http.Request) int64 { return 60 }})
	for most, quota := range map[string]ratelimit.Quota{
		"50/day":     ratelimit.PerDay(50),
		"10 at once": ratelimit.PerDay(600).Smooth(10),
	} {
		plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(60), ratelimit.PerHour(600).Smooth(60), quota)
		call := open(t.Context(), g, ratelimit.Caller{Subject: "ann", Plan: plan}, nil)
		if want := "This call costs 60 units, but your plan allows at most " + most + "."; call.Denial.Message != want {
			t.Errorf("text %q, want %q", call.Denial.Message, want)
		}
	}
}

// A further charge has the cost that identify names, and that of the call if it names none.
func TestCostOfFurtherCharges(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(100))
	g := newGate(Options{Cost: func(*http.Request) int64 { return 5 }})
	call := open(t.Context(), g, ratelimit.Caller{Subject: "ann", Plan: plan, Also: []ratelimit.Charge{
		{Subject: "team", Plan: plan}, {Subject: "bytes", Plan: plan, Cost: 70},
	}}, nil)
	var left []int64
	for i := range call.made {
		left = append(left, call.made[i].Remaining())
	}
	if diff := cmp.Diff([]int64{95, 95, 30}, left); diff != "" {
		t.Errorf("what is left (-want +got):\n%s", diff)
	}
}

// A wrongEngine returns a decision that no engine may return.
type wrongEngine struct{ d ratelimit.Decision }

func (e wrongEngine) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return e.d, nil
}

// What is neither an admission nor a denial that a client can be told is a failure of the
// engine, as in HTTP: it does not end the process.
func TestWrongDecisions(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.DefaultPenalty(), ratelimit.PerMinute(60), ratelimit.PerDay(100))
	for name, d := range map[string]ratelimit.Decision{
		"none":                        {},
		"no outcome":                  {Plan: plan, Cost: 1},
		"spared":                      {Outcome: ratelimit.Spared, Plan: plan, Cost: 1},
		"unknown":                     {Outcome: 77, Plan: plan, Cost: 1},
		"limited without a plan":      {Outcome: ratelimit.Limited, RetryAfter: 1},
		"banned without a plan":       {Outcome: ratelimit.Banned, RetryAfter: 1},
		"limited by no quota":         {Outcome: ratelimit.Limited, Plan: plan, Applicable: 2, Cost: 1, RetryAfter: 1},
		"limited by a negative quota": {Outcome: ratelimit.Limited, Plan: plan, Applicable: -1, Cost: 1, RetryAfter: 1},
		"limited until now":           {Outcome: ratelimit.Limited, Plan: plan, Cost: 1},
		"banned until before now":     {Outcome: ratelimit.Banned, Plan: plan, Cost: 1, RetryAfter: -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			var observed error
			opts := Options{
				Errors:  &apierror.Responder{Logger: slog.New(slog.DiscardHandler)},
				Observe: func(_ *http.Request, _ ratelimit.Caller, _ ratelimit.Decision, err error) { observed = err },
			}
			for _, opts.FailOpen = range []bool{false, true} {
				g := must(New("test", wrongEngine{d}, nobody, opts, func(error) bool { return false }))
				call := open(t.Context(), g, ratelimit.Caller{Subject: "ann", Plan: plan}, nil)
				if !errors.Is(observed, ratelimit.ErrUnavailable) {
					t.Errorf("observed %v, want an error that wraps ErrUnavailable", observed)
				}
				switch open := opts.FailOpen; {
				case open != (call.Denial == nil):
					t.Errorf("FailOpen: %t, denial %+v", open, call.Denial)
				case !open && (call.Denial.Code != Unavailable || call.Denial.RetryAfter != time.Second || call.Fields.Get("Retry-After") != "1"):
					t.Errorf("denial %+v, fields %v, want unavailable, and a retry after 1 s", call.Denial, call.Fields)
				}
			}
		})
	}
}

// A failingEngine does not decide.
type failingEngine struct{ err error }

func (e failingEngine) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, e.err
}

// A call that its client has cancelled before it was decided is neither a failure of the
// engine nor served uncharged.
func TestCancelledBeforeTheDecision(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for name, tt := range map[string]struct {
		err      error
		opts     Options
		code     Code // OK: the call is served
		observed bool
	}{
		"closed":            {context.Canceled, Options{}, Canceled, false},
		"open":              {context.Canceled, Options{FailOpen: true}, Canceled, false},
		"shadow":            {context.Canceled, Options{Shadow: true}, OK, false},
		"the engine failed": {ratelimit.ErrUnavailable, Options{}, Unavailable, true},
	} {
		observed := false
		tt.opts.Errors = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
		tt.opts.Observe = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) { observed = true }
		g := must(New("test", failingEngine{err: tt.err}, nobody, tt.opts, func(error) bool { return false }))
		got := OK
		if call := open(ctx, g, ann, nil); call.Denial != nil {
			got = call.Denial.Code
		}
		if got != tt.code || observed != tt.observed {
			t.Errorf("%s: code %d, observed: %v; want %d, %v", name, got, observed, tt.code, tt.observed)
		}
	}
}

// A partialEngine makes one of several charges, and does not decide the others.
type partialEngine struct {
	wrongEngine
	made int
}

func (e partialEngine) TakeAll(_ context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	decisions[e.made] = ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: charges[e.made].Plan, Cost: 1}
	return nil
}

// A call is admitted only if all of its charges are.
func TestChargesThatAreNotDecided(t *testing.T) {
	c := ratelimit.Caller{Subject: "ann", Plan: ten, Also: []ratelimit.Charge{{Subject: "all", Plan: ten}}}
	for made := range 2 {
		opts := Options{Errors: &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}}
		g := must(New("test", partialEngine{made: made}, nobody, opts, func(error) bool { return false }))
		if call := open(t.Context(), g, c, nil); call.Denial == nil || call.Denial.Code != Unavailable {
			t.Errorf("charge %d alone was made: denial %+v, want unavailable", made+1, call.Denial)
		}
	}
}

// In shadow mode no call is a strike.
func TestShadowIsNoPenalty(t *testing.T) {
	ban := ratelimit.Penalty{Strikes: 1, Ban: time.Hour, Growth: 2, Max: 2 * time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("p", ban, ratelimit.PerMinute(1))
	g := newGate(Options{Shadow: true, Observe: func(_ *http.Request, _ ratelimit.Caller, d ratelimit.Decision, _ error) {
		if d.Struck || d.Outcome == ratelimit.Banned {
			t.Errorf("decided %v, a strike: %v", d.Outcome, d.Struck)
		}
	}})
	for range 5 {
		open(t.Context(), g, ratelimit.Caller{Subject: "ann", Plan: plan}, nil)
	}
}

// Where calls differ in cost, a reservation counts units too.
func TestReservationIsWeighted(t *testing.T) {
	g := newGate(Options{Context: true, Cost: func(*http.Request) int64 { return 1 }})
	call := open(t.Context(), g, ann, nil)
	if d := limit.FromContext(call.Context).Decision(); !d.Weighted {
		t.Errorf("decision %+v", d)
	}
}

// must returns v. It panics if what a test sets up fails.
func must[V any](v V, err error) V {
	if err != nil {
		panic(err)
	}
	return v
}
