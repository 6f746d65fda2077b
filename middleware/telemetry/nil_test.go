package telemetry_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/animalstore/gatehouse/middleware/bearer"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// What was not set is refused where it is given, and does not panic when the
// MeterProvider collects.
func TestNilIsRefused(t *testing.T) {
	c := collect(t, telemetry.Options{})
	for want, err := range map[string]error{
		"telemetry: ObserveMemory: the engine must not be nil":    c.ObserveMemory(nil),
		"telemetry: ObserveFailover: the engine must not be nil":  c.ObserveFailover(nil),
		"telemetry: ObserveInFlight: the limiter must not be nil": c.ObserveInFlight("process", nil),
		"telemetry: ObserveBans: the engine must not be nil":      c.ObserveBans((*memory.Limiter)(nil)),
		"telemetry: Options.MeterProvider must not be a nil *metric.MeterProvider": func() error {
			_, err := telemetry.New(telemetry.Options{MeterProvider: (*metric.MeterProvider)(nil)})
			return err
		}(),
	} {
		if err == nil || err.Error() != want {
			t.Errorf("error %v, want %s", err, want)
		}
	}
	c.metrics(t)
	for _, none := range []telemetry.Authenticator{nil, (*bearer.Authenticator[string])(nil)} {
		if got := c.CallAuthentication(none); got != none {
			t.Errorf("CallAuthentication of a nil %T hides it from the interceptors, which refuse it", none)
		}
	}
}

// Without telemetry the same code runs, and handlers are not wrapped.
func TestNilRecordsNothing(t *testing.T) {
	var none *telemetry.Telemetry
	none.Decision(httptest.NewRequest("GET", "/", nil), ratelimit.Caller{Plan: free}, decided(free, ratelimit.Allowed, 0, 1), nil)
	none.CallDecision(t.Context(), "/pets.v1.Pets/Get", ratelimit.Caller{Plan: free}, decided(free, ratelimit.Allowed, 0, 1), nil)
	none.DeprecatedUse("getPet")(nil)
	none.Unbanned()
	none.RedisBatch(1, time.Second)
	if err := errors.Join(none.ObserveBans(nil), none.ObserveMemory(nil), none.ObserveFailover(nil), none.ObserveInFlight("process", nil), none.Close()); err != nil {
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
