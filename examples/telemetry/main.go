// Telemetry is a service with a rate limit and metrics for Prometheus: requests, what
// the limiter decided for each plan, how long a decision takes, and how full it is.
//
//	go run ./examples/telemetry
//	curl -s http://127.0.0.1:8081/metrics | grep gatehouse
package main

import (
	"context"
	"fmt"
	"net/http"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"go.opentelemetry.io/contrib/instrumentation/net/http/otelhttp"
	otelprometheus "go.opentelemetry.io/otel/exporters/prometheus"
	"go.opentelemetry.io/otel/sdk/metric"

	"github.com/animalstore/gatehouse/apierror"
	"github.com/animalstore/gatehouse/examples/internal/demo"
	"github.com/animalstore/gatehouse/middleware"
	"github.com/animalstore/gatehouse/middleware/clientip"
	"github.com/animalstore/gatehouse/middleware/limit"
	"github.com/animalstore/gatehouse/middleware/telemetry"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

func main() {
	fmt.Println("curl -i http://127.0.0.1:8081/hello\ncurl -s http://127.0.0.1:8081/metrics | grep gatehouse")
	demo.Serve(newHandler())
}

// measured is the embedded engine with a clock around each decision.
type measured struct {
	*memory.Limiter
	telemetry *telemetry.Telemetry
}

func (m measured) Take(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	return m.telemetry.Take(ctx, m.Limiter, subject, plan, cost)
}

// newHandler returns an API of one operation, and its metrics at /metrics. A real
// service has them on an address that its clients cannot reach.
func newHandler() (http.Handler, error) {
	registry := prometheus.NewRegistry()
	exporter, err := otelprometheus.New(otelprometheus.WithRegisterer(registry))
	if err != nil {
		return nil, err
	}
	meters := metric.NewMeterProvider(metric.WithReader(exporter))
	api := http.NewServeMux()
	api.HandleFunc("GET /hello", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "hello") })
	t, err := telemetry.New(meters)
	if err != nil {
		return nil, err
	}
	limiter, err := memory.New(memory.Options{})
	if err != nil {
		return nil, err
	}
	if err := t.ObserveEngine(limiter); err != nil {
		return nil, err
	}
	plan := ratelimit.MustPlan("guests", ratelimit.Penalty{}, ratelimit.PerMinute(5)) // many clients can share a network: no bans
	limited, err := limit.New(measured{limiter, t}, func(r *http.Request) (ratelimit.Caller, error) {
		return ratelimit.Caller{Subject: clientip.NetworkSubject(clientip.FromRemoteAddr().Addr(r)), Plan: plan}, nil
	}, limit.Options{Observe: t.Decision})
	if err != nil {
		return nil, err
	}
	route := telemetry.Route(telemetry.RouteOptions{
		// Requests that are limited do not reach the mux, and have a route nevertheless.
		Pattern: func(r *http.Request) string { _, pattern := api.Handler(r); return pattern },
	})
	observed := otelhttp.NewHandler(
		middleware.Chain(api, route, new(apierror.Responder).Recover, t.Panics, limited), "",
		otelhttp.WithMeterProvider(meters),
		// Otherwise the Host field of each request would be an attribute, and clients
		// could make any number of series. Without the port here, the port of that
		// field still would be.
		otelhttp.WithServerName("localhost:8081"))
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry, promhttp.HandlerOpts{}))
	mux.Handle("/", observed)
	return mux, nil
}
