package observe_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/animalstore/gatehouse/reference/internal/database"
	"github.com/animalstore/gatehouse/reference/internal/httpserver"
	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// Each metric of the server has the number that it is named for.
func TestMetricsOfTheServer(t *testing.T) {
	sdk := newSDK(t)
	state := observe.ServerState{
		Ready: true, DroppedLines: 2, Reloads: 3, RefusedReloads: 4,
		Admin:       httpserver.Stats{Open: 5, Idle: 6, Refused: 7, Evicted: 8, Waited: 9},
		API:         httpserver.Stats{Open: 10, Idle: 11, Refused: 12, Evicted: 13, Waited: 14},
		Sunsets:     map[string]time.Time{"getPet": time.Unix(15, 0)},
		Certificate: time.Unix(1_900_000_000, 5),
	}
	must(t, sdk.ObserveServer(func(context.Context) observe.ServerState { return state }))
	want := map[string]int64{
		"petstore.ready": 1, "petstore.saves.failing": 0, "petstore.log.dropped_lines": 2,
		"petstore.config.reloads applied": 3, "petstore.config.reloads refused": 4, "petstore.config.last_reload.success": 1,
		"petstore.connections.open admin": 5, "petstore.connections.idle admin": 6, "petstore.connections.refused admin": 7,
		"petstore.connections.evicted admin": 8, "petstore.connections.waited admin": 9,
		"petstore.connections.open api": 10, "petstore.connections.idle api": 11, "petstore.connections.refused api": 12,
		"petstore.connections.evicted api": 13, "petstore.connections.waited api": 14,
		"petstore.deprecation.sunset_timestamp getPet": 15, "petstore.certificate.expiry_timestamp": 1_900_000_000,
	}
	if diff := cmp.Diff(want, numbers(t, sdk)); diff != "" {
		t.Errorf("the metrics of a server that is ready (-want +got):\n%s", diff)
	}
	state.Ready, state.SavesFail, state.LastReloadRefused, state.Certificate = false, true, true, time.Time{}
	want["petstore.ready"], want["petstore.saves.failing"], want["petstore.config.last_reload.success"] = 0, 1, 0
	delete(want, "petstore.certificate.expiry_timestamp")
	if diff := cmp.Diff(want, numbers(t, sdk)); diff != "" {
		t.Errorf("the metrics of a server without TLS in trouble (-want +got):\n%s", diff)
	}
}

// numbers returns the whole numbers of the server by name and value of the attribute.
func numbers(t *testing.T, sdk memorySDK) map[string]int64 {
	t.Helper()
	all := make(map[string]int64)
	for name, m := range sdk.metrics(t) {
		if !strings.HasPrefix(name, "petstore.") {
			continue
		}
		var points []metricdata.DataPoint[int64]
		switch data := m.Data.(type) {
		case metricdata.Gauge[int64]:
			points = data.DataPoints
		case metricdata.Sum[int64]:
			points = data.DataPoints
		}
		for _, p := range points {
			key := name
			for _, kv := range p.Attributes.ToSlice() {
				key = fmt.Sprint(key, " ", kv.Value.AsString())
			}
			all[key] = p.Value
		}
	}
	return all
}

func TestMetricsOfAPool(t *testing.T) {
	sdk := newSDK(t)
	err := sdk.ObservePool(func() database.Pool {
		return database.Pool{Used: 1, Idle: 2, Max: 3, Waits: 4, WaitTimeouts: 5, Waited: 1500 * time.Millisecond}
	})
	must(t, err)
	want := map[string]int64{
		"petstore.database.connections.used": 1, "petstore.database.connections.idle": 2, "petstore.database.connections.max": 3,
		"petstore.database.waits": 4, "petstore.database.wait_timeouts": 5,
	}
	if diff := cmp.Diff(want, numbers(t, sdk)); diff != "" {
		t.Errorf("the metrics of a pool (-want +got):\n%s", diff)
	}
	waited, ok := sdk.metrics(t)["petstore.database.wait_time"].Data.(metricdata.Sum[float64])
	if !ok || len(waited.DataPoints) != 1 || waited.DataPoints[0].Value != 1.5 {
		t.Errorf("petstore.database.wait_time is %+v, want 1.5", waited)
	}
}

func TestNoMetricsWithoutAPool(t *testing.T) {
	sdk := newSDK(t)
	must(t, sdk.ObservePool(nil))
	if got := numbers(t, sdk); len(got) > 0 {
		t.Errorf("without a pool, the metrics are %v", got)
	}
}
