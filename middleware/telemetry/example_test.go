package telemetry_test

import (
	"context"
	"fmt"
	"log"
	"net/http"
	"net/http/httptest"

	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	"go.opentelemetry.io/otel/sdk/metric"
	"go.opentelemetry.io/otel/sdk/metric/metricdata"

	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A service with a limit by network, and what its SDK collects. A real service gives the
// MeterProvider an exporter.
func Example() {
	reader := metric.NewManualReader()
	t, err := telemetry.New(metric.NewMeterProvider(metric.WithReader(reader)))
	if err != nil {
		log.Fatal(err)
	}
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		log.Fatal(err)
	}
	client := clientip.FromRemoteAddr()
	plan := ratelimit.MustPlan("anonymous", ratelimit.Penalty{}, ratelimit.PerDay(2))
	limited, err := limit.New(limiter, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: clientip.NetworkSubject(client.Addr(r)), Plan: plan, Kind: ratelimit.KindNetwork}, nil
	}, limit.Options{Observe: t.Decision})
	if err != nil {
		log.Fatal(err)
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /", func(http.ResponseWriter, *http.Request) {})
	route := telemetry.Route(telemetry.RouteOptions{ClientAddress: client.Addr})
	handler := otelhttp.NewHandler(route(limited(mux)), "", otelhttp.WithServerName("localhost:8080"))

	for range 3 {
		handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest("GET", "/", nil))
	}
	var collected metricdata.ResourceMetrics
	if err := reader.Collect(context.Background(), &collected); err != nil {
		log.Fatal(err)
	}
	for _, m := range collected.ScopeMetrics[0].Metrics {
		if m.Name != "gatehouse.rate_limiting.requests" {
			continue
		}
		for _, series := range m.Data.(metricdata.Sum[int64]).DataPoints {
			if result, _ := series.Attributes.Value("gatehouse.result"); series.Value > 0 {
				fmt.Println(result.AsString(), series.Value)
			}
		}
	}
	// Unordered output:
	// allowed 2
	// limited 1
}
