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

	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func TestDeprecatedUseIsCountedByOperation(t *testing.T) {
	c := collect(t, telemetry.Options{})
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
	c := collect(t, telemetry.Options{})
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
	c := collect(t, telemetry.Options{})
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
	c := collect(t, telemetry.Options{})
	c.RedisBatch(64, time.Millisecond)
	for _, name := range []string{"gatehouse.redis.duration", "gatehouse.redis.batch_size"} {
		if n := c.series(t, name)[""]; n != 1 {
			t.Errorf("%s has %d measurements, want 1", name, n)
		}
	}
}

func TestEnginesAreObserved(t *testing.T) {
	c := collect(t, telemetry.Options{})
	local, err := memory.New(memory.Options{MaxSubjects: 4096})
	if err != nil {
		t.Fatal(err)
	}
	engine, err := failover.New(answering{err: ratelimit.ErrUnavailable}, failover.Options{ConsecutiveFailures: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer engine.Close()
	if err := errors.Join(c.ObserveMemory(local), c.ObserveFailover(engine)); err != nil {
		t.Fatal(err)
	}
	if got := c.series(t, "gatehouse.failover.circuit"); !cmp.Equal(got, map[string]int64{"closed": 1, "open": 0}) {
		t.Errorf("the circuit is %v, want closed", got)
	}
	local.Take(t.Context(), "owner:ann", free, 1)
	engine.Take(t.Context(), "owner:ann", free, 1)

	if got := c.series(t, "gatehouse.failover.circuit"); got["closed"] != 0 || got["open"] != 1 {
		t.Errorf("the circuit is %v, want open: its primary failed", got)
	}
	for name, want := range map[string]int64{
		"gatehouse.engine.subjects": 1, "gatehouse.engine.capacity": local.Stats().Bound,
		"gatehouse.failover.fallbacks": 1, "gatehouse.failover.failures": 1, "gatehouse.failover.opened": 1,
	} {
		if got := c.series(t, name)[""]; got != want {
			t.Errorf("%s is %d, want %d", name, got, want)
		}
	}
}

// banner has bans, and counts how often it lists them.
type banner struct {
	ratelimit.Banner
	listed int
	bans   []ratelimit.Ban
	err    error
}

func (b *banner) Bans(ctx context.Context) ([]ratelimit.Ban, error) {
	b.listed++
	if b.bans == nil && b.err == nil {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return b.bans, b.err
}

func TestBansInForceAreListedNowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := collect(t, telemetry.Options{})
		b := &banner{bans: make([]ratelimit.Ban, 3)}
		if err := c.ObserveBans(b); err != nil {
			t.Fatal(err)
		}
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

func TestCloseEndsTheSeries(t *testing.T) {
	c := collect(t, telemetry.Options{})
	if len(c.metrics(t)) == 0 {
		t.Fatal("no metrics before Close")
	}
	if err := c.Close(); err != nil {
		t.Fatal(err)
	}
	for _, m := range c.metrics(t) {
		if s := c.series(t, m.Name); len(s) > 0 {
			t.Errorf("%s still has series after Close: %v", m.Name, s)
		}
	}
}
