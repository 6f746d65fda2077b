// Package observe sets up OpenTelemetry for the server: metrics for Prometheus, and
// traces and metrics by OTLP if the standard environment variables ask for them.
//
//	o, err := observe.Start(ctx, version, logger)
//	...
//	defer o.Close()
//	db = o.Store(db)
//	handler, err := api.New(api.Config{Pets: db, Telemetry: o.Telemetry, ...})
//	...
//	handler = o.Handler(handler, client.Addr)
//
// [Observer.Metrics] is the handler of /metrics. It has the metrics of package
// middleware/telemetry, http.server.request.duration of the semantic conventions, those
// of the Go runtime and of the process, and
//
//	petstore.store.duration             histogram (s)          petstore.operation, error.type
//	petstore.connections.open           gauge (connection)     petstore.listener: api, admin
//	petstore.connections.refused, .evicted, .waited   counters (connection)    petstore.listener
//	petstore.saves.failing              gauge (0 or 1)
//	petstore.ready                      gauge (0 or 1)
//	petstore.config.last_reload.success gauge (0 or 1)
//	petstore.deprecation.sunset_timestamp    gauge (s)     gatehouse.operation
//	petstore.certificate.expiry_timestamp    gauge (s)
//	petstore.database.connections.used, .max    gauges (connection)    with PostgreSQL
//	petstore.database.waits             counter (call)         with PostgreSQL
//
// # Environment
//
// Nothing connects anywhere unless a variable says so: OTEL_EXPORTER_OTLP_ENDPOINT (or
// _TRACES_ENDPOINT, _METRICS_ENDPOINT), OTEL_TRACES_EXPORTER or OTEL_METRICS_EXPORTER.
// All other variables of the SDK and its exporters apply then, such as
// OTEL_TRACES_SAMPLER. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES always do.
// OTEL_SDK_DISABLED=true leaves only the metrics of the Go runtime and of the process.
//
// # Traces
//
// Clients decide nothing about traces. Each request begins a new trace, with a link to the
// trace in its traceparent field if it has one. Package otelhttp makes the spans. It gets only
// the requests that the sampler chooses, because it costs about 5 microseconds for each
// request, and the server itself about 33 for a list of pets.
package observe
