package rpclimit

import (
	"context"
	"errors"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// ChargeIf is not asked about calls that were not charged.
func TestChargeIfOfWhatWasNotCharged(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	staff := ratelimit.UnlimitedPlan("staff")
	for name, c := range map[string]struct {
		caller ratelimit.Caller
		err    error
		before int
		asked  int
	}{
		"charged":               {ratelimit.Caller{Subject: "ann", Plan: plan}, nil, 0, 1},
		"one of two charged":    {ratelimit.Caller{Subject: "ann", Plan: staff, Also: []ratelimit.Charge{{Subject: "all", Plan: plan}}}, nil, 0, 1},
		"unlimited":             {ratelimit.Caller{Subject: "ann", Plan: staff}, nil, 0, 0},
		"denied in shadow mode": {ratelimit.Caller{Subject: "ann", Plan: plan}, nil, 1, 0},
		"identify fails":        {ratelimit.Caller{}, errors.New("no"), 0, 0},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			g := newGate(Options{Shadow: true, ChargeIf: func(*http.Request, error) bool { asked++; return false }})
			for range c.before {
				open(t.Context(), g, c.caller, c.err)
			}
			open(t.Context(), g, c.caller, c.err).Finish(t.Context(), OK, nil)
			if asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// An engine that admits calls without a plan has charged nothing that could be given back.
func TestFinishWithoutAPlan(t *testing.T) {
	engine := struct {
		wrongEngine
		engine.Adjuster
	}{wrongEngine: wrongEngine{ratelimit.Decision{Outcome: ratelimit.Allowed}}}
	g := must(New("test", engine, nobody, Options{ChargeIf: func(*http.Request, error) bool { return false }}, func(error) bool { return false }))
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(1))
	open(t.Context(), g, ratelimit.Caller{Subject: "ann", Plan: plan}, nil).Finish(t.Context(), Internal, nil)
}

// A lateEngine cannot decide, and must not be asked to settle what it has not decided.
type lateEngine struct{ t *testing.T }

func (lateEngine) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, ratelimit.ErrUnavailable
}

func (e lateEngine) Adjust(_ context.Context, subject string, _ *ratelimit.Decision, _ int64, _ string) error {
	e.t.Errorf("%s is charged for a call that was not counted", subject)
	return nil
}

// Settle does nothing if the engine failed and Options let the call pass.
func TestSettleOfWhatWasNotCounted(t *testing.T) {
	g := must(New("test", lateEngine{t}, nobody, Options{Context: true, FailOpen: true}, func(error) bool { return false }))
	call := open(t.Context(), g, ann, nil)
	if err := limit.FromContext(call.Context).Settle(t.Context(), 5); err != nil {
		t.Error(err)
	}
}

// Without Options.Context the handler gets the context of the call, as it is.
func TestNoReservationUnlessAsked(t *testing.T) {
	if call := open(t.Context(), newGate(Options{}), ann, nil); call.Context != t.Context() {
		t.Errorf("the context is %v", call.Context)
	}
}

// A lateContext has a deadline that has passed, and has not noticed.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now(), true }

// What Finish gives back is what neither the client can cause nor the handler has settled.
// What a handler does at the deadline, such as giving up a connection, stays charged, whatever
// the code, although the context may end a moment later.
func TestFinish(t *testing.T) {
	early, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late := lateContext{t.Context()}
	never := func(*http.Request, error) bool { return false }
	always := func(*http.Request, error) bool { return true }
	for name, c := range map[string]struct {
		opts   Options
		end    context.Context // nil: has no deadline
		code   Code
		settle int64 // negative: not settled
		used   int64
	}{
		"charged":                       {Options{ChargeIf: always}, nil, Internal, -1, 1},
		"no ChargeIf":                   {Options{}, nil, Internal, -1, 1},
		"given back":                    {Options{ChargeIf: never}, nil, Internal, -1, 0},
		"given back, Context":           {Options{ChargeIf: never, Context: true}, nil, Internal, -1, 0},
		"before the deadline":           {Options{ChargeIf: never}, early, Internal, -1, 0},
		"at the deadline":               {Options{ChargeIf: never}, late, Internal, -1, 1},
		"cancelled":                     {Options{ChargeIf: never}, cancelled, OK, -1, 1},
		"deadline exceeded":             {Options{ChargeIf: never}, nil, DeadlineExceeded, -1, 0},
		"deadline of the call exceeded": {Options{ChargeIf: never}, early, DeadlineExceeded, -1, 1},
		"settled":                       {Options{Context: true, ChargeIf: never}, nil, OK, 2, 2},
		"settled at nothing, charged":   {Options{Context: true, ChargeIf: always}, nil, OK, 0, 0},
	} {
		g := newGate(c.opts)
		ctx := c.end
		if ctx == nil {
			ctx = t.Context()
		}
		call := open(t.Context(), g, ann, nil)
		if c.settle >= 0 {
			if err := limit.FromContext(call.Context).Settle(ctx, c.settle); err != nil {
				t.Error(err)
			}
		}
		call.Finish(ctx, c.code, nil)
		d, err := g.limiter.(engine.Peeker).Peek(t.Context(), "ann", ten)
		if used := 10 - d.Remaining(); err != nil || used != c.used {
			t.Errorf("%s: %d units used (%v), want %d", name, used, err, c.used)
		}
	}
}

// With Options.Context calls that were not counted have a reservation too.
func TestReservations(t *testing.T) {
	staff := ratelimit.UnlimitedPlan("staff")
	opts := Options{Context: true, FailOpen: true}
	down := must(New("test", lateEngine{t}, nobody, opts, nil))
	for name, c := range map[string]struct {
		gate   *Gate
		caller ratelimit.Caller
	}{
		"counted":          {newGate(opts), ann},
		"unlimited":        {newGate(opts), ratelimit.Caller{Subject: "ann", Plan: staff}},
		"engine is down":   {down, ann},
		"several, is down": {down, ratelimit.Caller{Subject: "ann", Plan: ten, Also: []ratelimit.Charge{{Subject: "all", Plan: staff}}}},
	} {
		call := open(t.Context(), c.gate, c.caller, nil)
		if r := limit.FromContext(call.Context); r == nil || r.Decision().Outcome != ratelimit.Allowed {
			t.Errorf("%s: the handler finds %v", name, r)
		}
	}
}

func TestCodes(t *testing.T) {
	for status, want := range map[int]Code{
		400: InvalidArgument, 401: Unauthenticated, 403: PermissionDenied, 404: NotFound, 405: InvalidArgument,
		409: Aborted, 412: FailedPrecondition, 422: InvalidArgument, 429: ResourceExhausted, 499: Canceled,
		500: Internal, 501: Unimplemented, 502: Internal, 503: Unavailable, 504: DeadlineExceeded, 599: Internal,
	} {
		if got := codeOf(status); got != want {
			t.Errorf("status %d has the code %d, want %d", status, got, want)
		}
		if got := codeOf(status).ServerFault(); got != (status >= 500) {
			t.Errorf("status %d: a fault of the server: %v", status, got)
		}
	}
	for _, c := range []Code{OK, Canceled, ResourceExhausted, Unauthenticated} {
		if c.ServerFault() {
			t.Errorf("code %d is a fault of the server", c)
		}
	}
	if !Unknown.ServerFault() || !DataLoss.ServerFault() {
		t.Error("unknown and data loss are faults of the server")
	}
}

// A wait is never shortened: a client that waits as long is admitted.
func TestWaitsAreRoundedUp(t *testing.T) {
	for wait, want := range map[time.Duration]time.Duration{
		0: 0, 1: time.Millisecond, time.Millisecond: time.Millisecond, time.Second + 1: 1001 * time.Millisecond,
		math.MaxInt64: math.MaxInt64 / time.Millisecond * time.Millisecond,
	} {
		if got := milliseconds(wait); got != want {
			t.Errorf("a wait of %v is sent as %v, want %v", wait, got, want)
		}
	}
}

// An error without a text has that of its status.
func TestMessageIsNeverEmpty(t *testing.T) {
	d := FromError(apierror.New(http.StatusNotFound, "no_tenant", ""))
	if d.Message != "Not Found" || d.Reason != "NO_TENANT" || d.Code != NotFound {
		t.Errorf("denial %+v", d)
	}
}
