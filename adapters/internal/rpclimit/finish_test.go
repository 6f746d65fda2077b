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
			g := newGate(newEngine(), Options{Shadow: true, ChargeIf: func(*http.Request, error) bool { asked++; return true }})
			for range c.before {
				serve(t.Context(), g, c.caller, c.err, nil)
			}
			asked = 0
			serve(t.Context(), g, c.caller, c.err, nil)
			if asked != c.asked {
				t.Errorf("asked %d times, want %d", asked, c.asked)
			}
		})
	}
}

// A lateContext has a deadline that has passed, and has not noticed.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now(), true }

// What is given back is what neither the client can cause nor the handler has settled.
// What a handler does at the deadline, such as giving up a connection, stays charged, whatever
// the code, although the context may end a moment later.
func TestChargeIf(t *testing.T) {
	early, cancel := context.WithTimeout(t.Context(), time.Hour)
	defer cancel()
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late := lateContext{t.Context()}
	never := func(*http.Request, error) bool { return false }
	unasked := func(*http.Request, error) bool {
		t.Error("ChargeIf is asked about a call that has ended")
		return false
	}
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
		"at the deadline":               {Options{ChargeIf: unasked}, late, Internal, -1, 1},
		"cancelled":                     {Options{ChargeIf: unasked}, cancelled, OK, -1, 1},
		"deadline exceeded":             {Options{ChargeIf: never}, nil, DeadlineExceeded, -1, 0},
		"deadline of the call exceeded": {Options{ChargeIf: unasked}, early, DeadlineExceeded, -1, 1},
		"settled":                       {Options{Context: true, ChargeIf: never}, nil, OK, 2, 2},
		"settled at nothing, charged":   {Options{Context: true, ChargeIf: always}, nil, OK, 0, 0},
	} {
		l := newEngine()
		ctx := c.end
		if ctx == nil {
			ctx = t.Context()
		}
		serve(ctx, newGate(l, c.opts), ann, nil, func(ctx context.Context) Code {
			if c.settle >= 0 {
				if err := limit.FromContext(ctx).Settle(ctx, c.settle); err != nil {
					t.Error(err)
				}
			}
			return c.code
		})
		d, err := l.Peek(t.Context(), "ann", ten)
		if used := 10 - d.Remaining(); err != nil || used != c.used {
			t.Errorf("%s: %d units used (%v), want %d", name, used, err, c.used)
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

// An error without a text has that of its status. A status that is not UTF-8 cannot be sent.
func TestMessages(t *testing.T) {
	for message, want := range map[string]string{"": "Not Found", "Kein \xff.": "Kein \uFFFD."} {
		d := FromError(apierror.New(http.StatusNotFound, "no_tenant", message))
		if d.Message != want || d.Reason != "NO_TENANT" || d.Code != NotFound {
			t.Errorf("%q: denial %+v, want %q", message, d, want)
		}
	}
}
