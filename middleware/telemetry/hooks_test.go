package telemetry_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/inflight"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/lease"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func TestDeprecatedUseIsCountedByOperation(t *testing.T) {
	c := collect(t)
	c.DeprecatedUse("getPet")(nil)
	c.DeprecatedUse("getPet")(nil) // as after a reload of the settings
	c.DeprecatedUse("listOwners")
	want := map[string]int64{"getPet": 2, "listOwners": 0}
	if diff := cmp.Diff(want, c.series(t, "gatehouse.deprecation.requests")); diff != "" {
		t.Errorf("requests by operation (-want +got):\n%s", diff)
	}
	for i := range 200 {
		c.DeprecatedUse(fmt.Sprint("operation ", i))(nil)
	}
	series := c.series(t, "gatehouse.deprecation.requests")
	if len(series) != 101 || series["other"] != 102 {
		t.Errorf("%d series, and %d requests of other; want 101 and 102", len(series), series["other"])
	}
}

func TestPanicsAreCountedAndPassedOn(t *testing.T) {
	c := collect(t)
	serve := func(v any) (passed any) {
		defer func() { passed = recover() }()
		c.Panics(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
			if v != nil {
				panic(v)
			}
		})).ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
		return nil
	}
	for _, v := range []any{nil, "oops", http.ErrAbortHandler} {
		if got := serve(v); got != v {
			t.Errorf("a panic with %v is passed on as %v", v, got)
		}
	}
	if n := c.series(t, "gatehouse.panics")[""]; n != 1 {
		t.Errorf("%d panics are counted, want 1: an aborted response is none", n)
	}
}

// answering is a limiter with one answer.
type answering struct {
	d   ratelimit.Decision
	err error
}

func (a answering) Take(context.Context, string, *ratelimit.Plan, int64) (ratelimit.Decision, error) {
	return a.d, a.err
}

func TestDecisionsAreMeasuredByResult(t *testing.T) {
	c := collect(t)
	failure := errors.New("the engine failed")
	for _, l := range []answering{
		{d: ratelimit.Decision{Outcome: ratelimit.Allowed}}, {d: ratelimit.Decision{Outcome: ratelimit.Allowed}},
		{d: ratelimit.Decision{Outcome: ratelimit.Limited}}, {d: ratelimit.Decision{Outcome: ratelimit.Banned}}, {d: ratelimit.Decision{Outcome: ratelimit.Suspended}}, {err: failure},
	} {
		d, err := c.Take(t.Context(), l, "owner:ann", free, 1)
		if d != l.d || err != l.err {
			t.Errorf("Take returned %v, %v; want those of the limiter, %v, %v", d, err, l.d, l.err)
		}
	}
	want := map[string]int64{"allowed": 2, "limited": 1, "banned": 1, "suspended": 1, "undecided": 1}
	if diff := cmp.Diff(want, c.series(t, "gatehouse.engine.duration")); diff != "" {
		t.Errorf("measurements by result (-want +got):\n%s", diff)
	}
}

func TestRedisBatchesAreMeasured(t *testing.T) {
	c := collect(t)
	c.RedisBatch(64, time.Millisecond)
	for _, name := range []string{"gatehouse.redis.duration", "gatehouse.redis.batch_size"} {
		if n := c.series(t, name)[""]; n != 1 {
			t.Errorf("%s has %d measurements, want 1", name, n)
		}
	}
}

func TestEnginesAreObserved(t *testing.T) {
	c := collect(t)
	local := testcheck.Must(memory.New(memory.Options{MaxSubjects: 4096}))
	engine := testcheck.Must(failover.New(answering{err: ratelimit.ErrUnavailable}, failover.Options{ConsecutiveFailures: 1}))
	defer engine.Close()
	shares := testcheck.Must(lease.New(local))
	testcheck.NoError(t, errors.Join(c.ObserveEngine(local), c.ObserveEngine(engine), c.ObserveEngine(shares)))
	if got := c.series(t, "gatehouse.failover.circuit"); !cmp.Equal(got, map[string]int64{"closed": 1, "open": 0}) {
		t.Errorf("the circuit is %v, want closed", got)
	}
	busy := ratelimit.MustPlan("busy", ratelimit.Penalty{}, ratelimit.Quota{Limit: fixedwindow.MaxUnits, Window: fixedwindow.MaxLength})
	for c.series(t, "gatehouse.lease.shares")[""] != 1 || c.series(t, "gatehouse.lease.held")[""] < 2 {
		shares.Take(t.Context(), "owner:ann", busy, 1)
	}
	shares.Close()
	engine.Take(t.Context(), "owner:ann", free, 1)

	if got := c.series(t, "gatehouse.failover.circuit"); got["closed"] != 0 || got["open"] != 1 {
		t.Errorf("the circuit is %v, want open: its primary failed", got)
	}
	for name, want := range map[string]int64{
		"gatehouse.engine.subjects": 1, "gatehouse.engine.capacity": local.Stats().Bound,
		"gatehouse.failover.fallbacks": 1, "gatehouse.failover.failures": 1, "gatehouse.failover.opened": 1,
		"gatehouse.lease.held": 0, "gatehouse.lease.returned": int64(shares.Stats().Returned), "gatehouse.lease.expired": 0,
		"gatehouse.lease.local": int64(shares.Stats().Local), "gatehouse.lease.asked": int64(shares.Stats().Asked),
	} {
		if got := c.series(t, name)[""]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// banner has bans, and counts how often it lists them.
type banner struct {
	engine.Banner
	listed int
	bans   []engine.Ban
	err    error
}

func (b *banner) Bans(ctx context.Context) ([]engine.Ban, error) {
	b.listed++
	if b.bans == nil && b.err == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return b.bans, b.err
}

func TestBansInForceAreListedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collect(t)
		b := &banner{bans: make([]engine.Ban, 3)}
		testcheck.NoError(t, c.ObserveBans(b))
		want := func(listed int, series map[string]int64) {
			t.Helper()
			if got := c.series(t, "gatehouse.bans.active"); !cmp.Equal(got, series) || b.listed != listed {
				t.Errorf("the gauge is %v after %d lists, want %v after %d", got, b.listed, series, listed)
			}
		}
		want(1, map[string]int64{"": 3})
		b.bans = b.bans[:1]
		time.Sleep(14 * time.Second)
		want(1, map[string]int64{"": 3})
		time.Sleep(time.Second)
		want(2, map[string]int64{"": 1})

		b.err, b.bans = errors.New("Redis is away"), nil
		time.Sleep(15 * time.Second)
		want(3, map[string]int64{})

		b.err = nil // now it does not answer
		time.Sleep(15 * time.Second)
		before := time.Now()
		want(4, map[string]int64{})
		if waited := time.Since(before); waited != 2*time.Second {
			t.Errorf("a collection waited %v for the bans, want 2s", waited)
		}
	})
}

type nothing struct{ _ byte }

func (*nothing) ServeHTTP(http.ResponseWriter, *http.Request) {}

// A request that is charged to several subjects is measured once, by the decision that
// matters most.
func TestTakeAllIsMeasured(t *testing.T) {
	c := collect(t)
	l := testcheck.Must(memory.New(memory.Options{}))
	once := ratelimit.MustPlan("once", ratelimit.Penalty{}, ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	charges := []ratelimit.Charge{{Subject: "owner:ann", Plan: free, Cost: 1}, {Subject: "everybody", Plan: once, Cost: 1}}
	decisions := make([]ratelimit.Decision, 2)
	for range 3 {
		testcheck.NoError(t, c.TakeAll(t.Context(), l, charges, decisions))
	}
	if err := c.TakeAll(t.Context(), l, charges, nil); err == nil {
		t.Error("no room for decisions: got no error")
	}
	var none *telemetry.Telemetry
	if err := none.TakeAll(t.Context(), l, charges, decisions); err != nil || decisions[1].Outcome != ratelimit.Limited {
		t.Errorf("without telemetry: got %v and error %v, want limited", decisions[1].Outcome, err)
	}
	want := map[string]int64{"allowed": 1, "limited": 2, "undecided": 1}
	if diff := cmp.Diff(want, c.series(t, "gatehouse.engine.duration")); diff != "" {
		t.Errorf("measurements by result (-want +got):\n%s", diff)
	}
}

// What was not set is refused where it is given, and does not panic when the
// MeterProvider collects.
func TestNilIsRefused(t *testing.T) {
	c := collect(t)
	for want, err := range map[string]error{
		"telemetry: ObserveEngine: the engine must not be nil":                                                                  c.ObserveEngine((*memory.Limiter)(nil)),
		"telemetry: ObserveEngine: the engine must be one of package memory, failover or lease, got a telemetry_test.answering": c.ObserveEngine(answering{}),
		"telemetry: ObserveInFlight: the limiter must not be nil":                                                               c.ObserveInFlight("process", nil),
		"telemetry: ObserveBans: the engine must not be nil":                                                                    c.ObserveBans((*memory.Limiter)(nil)),
		"telemetry: the MeterProvider must not be a nil *metric.MeterProvider": func() error {
			_, err := telemetry.New((*metric.MeterProvider)(nil))
			return err
		}(),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	c.metrics(t)
}

// Without telemetry the same code runs, and handlers are not wrapped.
func TestNilRecordsNothing(t *testing.T) {
	var none *telemetry.Telemetry
	none.Decision(httptest.NewRequest("GET", "/", nil), ratelimit.Caller{Plan: free}, decided(free, ratelimit.Allowed, 0, 1), nil)
	none.CallAuthentication(t.Context())
	none.DeprecatedUse("getPet")(nil)
	none.Unbanned()
	none.RedisBatch(1, time.Second)
	if err := errors.Join(none.ObserveBans(nil), none.ObserveEngine(nil), none.ObserveInFlight("process", nil)); err != nil {
		t.Error(err)
	}
	if d, err := none.Take(t.Context(), answering{d: ratelimit.Decision{Cost: 7}}, "owner:ann", free, 1); d.Cost != 7 || err != nil {
		t.Errorf("Take returned %v, %v; want what the limiter returned", d, err)
	}
	var next http.Handler = new(nothing)
	for _, wrap := range []func(http.Handler) http.Handler{none.Authentication, none.Panics} {
		if got := wrap(next); got != next {
			t.Errorf("a middleware returned %v, want the handler itself", got)
		}
	}
}

func TestObserveInFlight(t *testing.T) {
	c := collect(t)
	owners := testcheck.Must(inflight.New(1, func(r *http.Request) (inflight.Caller, error) {
		return inflight.Caller{Subject: r.URL.Path}, nil
	}, inflight.Options{Shared: func(context.Context, string, int) (func(), error) {
		return nil, errors.New("away")
	}}))
	process := testcheck.Must(inflight.NewProcess(10, inflight.Options{}))
	for name, l := range map[string]*inflight.Limiter{"owners": owners, "process": process} {
		testcheck.NoError(t, c.ObserveInFlight(name, l))
	}

	send := func(h http.Handler, path string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	refused := process.Middleware(owners.Middleware(http.NotFoundHandler()))
	check := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		send(refused, "/ann")
		for name, want := range map[string]map[string]int64{
			"gatehouse.in_flight.requests": {"owners admitted": 2, "owners refused": 1, "process admitted": 3, "process refused": 0},
			"gatehouse.in_flight.unshared": {"owners": 2, "process": 0},
			"gatehouse.in_flight.running":  {"owners": 2, "process": 2},
			"gatehouse.in_flight.waiting":  {"owners": 0, "process": 0},
			"gatehouse.in_flight.subjects": {"owners": 2, "process": 1},
		} {
			if diff := cmp.Diff(want, c.series(t, name)); diff != "" {
				t.Errorf("%s (-want +got):\n%s", name, diff)
			}
		}
	})
	second := process.Middleware(owners.Middleware(check))
	first := process.Middleware(owners.Middleware(http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		send(second, "/bob")
	})))
	send(first, "/ann")
}

func TestAuthenticationsAreCountedByOutcome(t *testing.T) {
	c := collect(t)
	auth := testcheck.Must(bearer.New("pets", func(_ context.Context, token string) (string, error) {
		switch token {
		case "good":
			return "ann", nil
		case "bad":
			return "", bearer.ErrInvalid
		case "guess":
			return "", apierror.New(http.StatusTooManyRequests, "rate_limit_exceeded", "")
		}
		return "", errors.New("the store is away")
	}, bearer.Options{}))
	count := c.Authentication(http.NotFoundHandler())
	for _, tokens := range [][]string{{"Bearer good"}, {"Bearer good"}, {"Bearer bad"}, {"Bearer guess"}, {"Bearer x"}, {}, {"Bearer a", "Bearer a"}} {
		r := httptest.NewRequest("GET", "/", nil)
		r.Header["Authorization"] = tokens
		w := httptest.NewRecorder()
		auth.Identify(count).ServeHTTP(w, r)
		if w.Code != http.StatusNotFound {
			t.Errorf("Authorization %q: status %d, want that of the handler inside, 404", tokens, w.Code)
		}
	}
	count.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	want := map[string]int64{
		"authenticated": 2, "invalid": 1, "unavailable": 1, "missing": 1, "repeated": 1, "refused": 1, "unidentified": 1,
	}
	if diff := cmp.Diff(want, c.series(t, "gatehouse.authentication.requests")); diff != "" {
		t.Errorf("requests by outcome (-want +got):\n%s", diff)
	}
}
