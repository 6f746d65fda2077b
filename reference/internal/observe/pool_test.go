package observe_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/animalstore/gatehouse/reference/internal/database"
)

func TestMetricsOfAPool(t *testing.T) {
	sdk := newSDK(t)
	err := sdk.ObservePool(func() database.Pool {
		return database.Pool{Used: 1, Idle: 2, Max: 3, Waits: 4, WaitTimeouts: 5, Waited: 1500 * time.Millisecond}
	})
	if err != nil {
		t.Fatal(err)
	}
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
	if err := sdk.ObservePool(nil); err != nil {
		t.Fatal(err)
	}
	if got := numbers(t, sdk); len(got) > 0 {
		t.Errorf("without a pool, the metrics are %v", got)
	}
}
