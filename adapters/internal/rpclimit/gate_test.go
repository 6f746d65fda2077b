package rpclimit

import (
	"context"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// ann is the caller of most tests.
var (
	ten = ratelimit.MustPlan("ten", ratelimit.Penalty{}, ratelimit.PerMinute(10))
	ann = ratelimit.Caller{Subject: "ann", Plan: ten}
)

func newEngine() *memory.Limiter {
	at := time.Date(2026, 11, 22, 12, 0, 43, 0, time.UTC)
	return testcheck.Must(memory.New(memory.Options{Now: func() time.Time { return at }}))
}

func newGate(l ratelimit.Limiter, opts Options) *Gate {
	return testcheck.Must(New("test", l, nobody, opts, func(error) bool { return false }, errPanicked))
}

var (
	errPanicked = errors.New("panicked")
	quiet       = &apierror.Responder{Logger: slog.New(slog.DiscardHandler)}
)

func nobody(*http.Request) (ratelimit.Caller, error) { return ratelimit.Caller{}, nil }

// serve serves a call of a caller. handle may be nil.
func serve(ctx context.Context, g *Gate, c ratelimit.Caller, handle func(*Call) Code) *Call {
	g.identify = func(*http.Request) (ratelimit.Caller, error) { return c, nil }
	return g.Serve(Request(ctx, "/test.Echo/Unary", nil, ""), func(c *Call) (code Code, err error) {
		if handle != nil {
			code = handle(c)
		}
		return code, nil
	})
}

// The error names the adapter, and comes before the first call.
func TestNewChecksItsArguments(t *testing.T) {
	for want, c := range map[string]struct {
		identify Identify
		opts     Options
	}{
		"test: limit: New: identify must not be nil":                                        {nil, Options{}},
		"test: a call has no HTTP status: set Options.ChargeIf, not limit.Options.ChargeIf": {nobody, Options{Options: limit.Options{ChargeIf: limit.NotServerError}}},
	} {
		if _, err := New("test", newEngine(), c.identify, c.opts, nil, nil); err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
}

// Of several quotas those are violated that have too little left. The minute has just
// enough.
func TestViolations(t *testing.T) {
	plan := ratelimit.MustPlan("p", ratelimit.Penalty{}, ratelimit.PerMinute(2), ratelimit.PerHour(1), ratelimit.PerDay(1))
	g, c := newGate(newEngine(), Options{}), ratelimit.Caller{Subject: "ann", Plan: plan}
	serve(t.Context(), g, c, nil)
	want := []Violation{{"hour", "1/hour", 1}, {"day", "1/day", 1}}
	if diff := cmp.Diff(want, serve(t.Context(), g, c, nil).Denial.Violations); diff != "" {
		t.Errorf("violations (-want +got):\n%s", diff)
	}
}

// A holdingEngine counts what it holds.
type holdingEngine struct {
	*memory.Limiter
	held *int
}

func (e holdingEngine) Hold(string, time.Duration) ratelimit.Limiter { *e.held++; return e.Limiter }

func (e holdingEngine) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	*e.held--
	return e.Limiter.Adjust(ctx, subject, d, units, id)
}

// A charge is held until its call has ended, also one that panics, or refunds it.
func TestHoldLastsAsLongAsTheCall(t *testing.T) {
	for name, chargeIf := range map[string]func(*http.Request, error) bool{
		"charged": nil, "refunded": func(*http.Request, error) bool { return false },
	} {
		e := holdingEngine{newEngine(), new(int)}
		g := newGate(e, Options{Options: limit.Options{Settle: true, Hold: time.Minute}, ChargeIf: chargeIf})
		func() {
			defer func() { _ = recover() }()
			serve(t.Context(), g, ann, func(*Call) Code {
				if *e.held != 1 {
					t.Errorf("%s: during the call %d charges are held, want 1", name, *e.held)
				}
				panic(name)
			})
		}()
		if *e.held != 0 {
			t.Errorf("%s: after the call %d charges are held", name, *e.held)
		}
	}
}

// A failingEngine does not decide.
type failingEngine struct{ err error }

func (e failingEngine) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return ratelimit.Decision{}, e.err
}

// A call that its client has cancelled before it was decided, or whose deadline has passed,
// is neither a failure of the engine nor served uncharged.
func TestEndedBeforeTheDecision(t *testing.T) {
	cancelled, cancel := context.WithCancel(t.Context())
	cancel()
	late, cancel := context.WithTimeout(t.Context(), 0)
	defer cancel()
	for name, tt := range map[string]struct {
		ctx      context.Context
		err      error
		opts     Options
		code     Code // OK: the call is served
		observed bool
	}{
		"closed":            {cancelled, context.Canceled, Options{}, Canceled, false},
		"open":              {cancelled, context.Canceled, Options{Options: limit.Options{FailOpen: true}}, Canceled, false},
		"shadow":            {cancelled, context.Canceled, Options{Options: limit.Options{Shadow: true}}, OK, false},
		"late":              {late, context.DeadlineExceeded, Options{}, Unavailable, false},
		"late, open":        {late, context.DeadlineExceeded, Options{Options: limit.Options{FailOpen: true}}, DeadlineExceeded, false},
		"late, shadow":      {late, context.DeadlineExceeded, Options{Options: limit.Options{Shadow: true}}, OK, false},
		"the engine failed": {cancelled, ratelimit.ErrUnavailable, Options{}, Unavailable, true},
	} {
		observed := false
		tt.opts.Errors = quiet
		tt.opts.Observe = func(*http.Request, ratelimit.Caller, ratelimit.Decision, error) { observed = true }
		got := OK
		if call := serve(tt.ctx, newGate(failingEngine{err: tt.err}, tt.opts), ann, nil); call.Denial != nil {
			got = call.Denial.Code
		}
		if got != tt.code || observed != tt.observed {
			t.Errorf("%s: code %d, observed: %v; want %d, %v", name, got, observed, tt.code, tt.observed)
		}
	}
}

// A lateContext has a deadline that has passed, and has not noticed.
type lateContext struct{ context.Context }

func (lateContext) Deadline() (time.Time, bool) { return time.Now(), true }

// What a handler does at the deadline, such as giving up a connection, stays charged, although
// the context may end a moment later, and so does a call whose handler does not wait for a
// message any longer.
func TestCallsThatTheClientHoldsUp(t *testing.T) {
	l := newEngine()
	g := newGate(l, Options{ChargeIf: func(*http.Request, error) bool { return false }})
	serve(lateContext{t.Context()}, g, ann, func(*Call) Code { return Internal })
	waits, release := make(chan bool), make(chan bool)
	defer close(release)
	serve(t.Context(), g, ann, func(c *Call) Code {
		go func() {
			_ = c.Receive(func() error {
				waits <- true
				<-release
				return nil
			})
		}()
		<-waits
		return Internal
	})
	if d := testcheck.Must(l.Peek(t.Context(), "ann", ten)); d.Remaining() != 8 {
		t.Errorf("%d of 10 are left, want 8", d.Remaining())
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
