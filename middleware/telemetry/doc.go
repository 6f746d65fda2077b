// Package telemetry reports what the packages of Gatehouse do through the API of
// OpenTelemetry: metrics for the rate limiter and its engine, authentication,
// deprecated operations and panics, and on the span of a request gatehouse.plan,
// gatehouse.result and gatehouse.key.id, the public ID of its API key. The service
// chooses the SDK and its exporters.
//
//	t, err := telemetry.New(telemetry.Options{})
//	...
//	limit, err := limit.New(limiter, identify, limit.Options{Observe: t.Decision})
//	...
//	api = middleware.Chain(api, middleware.Recover(nil), t.Panics, auth.Identify, t.Authentication, limit, auth.Require)
//	route := telemetry.Route(telemetry.RouteOptions{ClientAddress: client.Addr})
//	server.Handler = otelhttp.NewHandler(route(api), "", otelhttp.WithServerName("api.example:443"))
//
// examples/telemetry exports it to Prometheus. The instruments, with units in parentheses:
//
//	gatehouse.rate_limiting.requests    counter (request)    gatehouse.plan, gatehouse.result, gatehouse.window
//	gatehouse.rate_limiting.near_limit  counter (request)    gatehouse.plan, gatehouse.window
//	gatehouse.rate_limiting.strikes     counter (strike)     gatehouse.plan
//	gatehouse.bans.started              counter (ban)        gatehouse.plan
//	gatehouse.bans.unbanned             counter (ban)
//	gatehouse.bans.active               gauge (ban)
//	gatehouse.authentication.requests   counter (request)    gatehouse.result
//	gatehouse.deprecation.requests      counter (request)    gatehouse.operation
//	gatehouse.engine.duration           histogram (s)        gatehouse.result
//	gatehouse.engine.subjects, .capacity    gauges (subject)
//	gatehouse.engine.evictions, .refusals   counters (subject)
//	gatehouse.failover.circuit          gauge (0 or 1)       gatehouse.state: closed, open
//	gatehouse.failover.pending          gauge (subject)
//	gatehouse.failover.fallbacks, .failures, .timeouts, .opened, .lost   counters
//	gatehouse.in_flight.requests        counter (request)    gatehouse.limiter, gatehouse.result
//	gatehouse.in_flight.running, .waiting   gauges (request) gatehouse.limiter
//	gatehouse.in_flight.subjects        gauge (subject)      gatehouse.limiter
//	gatehouse.redis.duration            histogram (s)
//	gatehouse.redis.batch_size          histogram (request)
//	gatehouse.panics                    counter (panic)
//
// gatehouse.result of a decision is allowed, limited, banned, suspended, or undecided if the
// engine failed; of an authentication, the text of a [bearer.Outcome]; of a limit on requests
// in progress, admitted or refused. gatehouse.limiter is the service's name for that limit.
// gatehouse.window is that of the applicable quota: second, minute, hour, day, month,
// local-day (a day in a time zone), 900s and the like, after smooth- for a smooth quota, and
// empty without a quota. near_limit counts allowed requests that left at most a tenth of it.
//
// # Cardinality
//
// Clients cannot create series: no attribute has a subject, a host, a path, an address
// or a key. Names that come from settings and stored keys are bounded: 100 plans, 50
// windows, 400 pairs of both and 100 operations. Everything beyond has the value other.
//
// Metrics of otelhttp do have the Host field of each request, which any client can set,
// unless otelhttp.WithServerName names the server and its port.
package telemetry
