package telemetry_test

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/middleware/inflight"
	"github.com/animalstore/gatehouse/middleware/telemetry"
)

func TestObserveInFlight(t *testing.T) {
	c := collect(t, telemetry.Options{})
	owners, err := inflight.New(1, func(r *http.Request) (inflight.Caller, error) {
		return inflight.Caller{Subject: r.URL.Path}, nil
	}, inflight.Options{})
	if err != nil {
		t.Fatal(err)
	}
	process, err := inflight.NewProcess(10, inflight.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for name, l := range map[string]*inflight.Limiter{"owners": owners, "process": process} {
		if err := c.ObserveInFlight(name, l); err != nil {
			t.Fatal(err)
		}
	}

	send := func(h http.Handler, path string) {
		h.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", path, nil))
	}
	refused := process.Middleware(owners.Middleware(http.NotFoundHandler()))
	check := http.HandlerFunc(func(http.ResponseWriter, *http.Request) {
		send(refused, "/ann")
		for name, want := range map[string]map[string]int64{
			"gatehouse.in_flight.requests": {"owners admitted": 2, "owners refused": 1, "process admitted": 3, "process refused": 0},
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
