// Package telemetry reports what the packages of Gatehouse do through the API of
// OpenTelemetry: metrics for the rate limiter and its engine, authentication,
// deprecated operations and panics, and attributes of the span of a request. The
// service chooses the SDK and its exporters.
//
//	t, err := telemetry.New(telemetry.Options{})
//	...
//	limit, err := ratelimit.New(limiter, identify, ratelimit.Options{Observe: t.Decision})
//	...
//	api = middleware.Chain(api, middleware.Recover(nil), t.Panics, auth.Identify, t.Authentication, limit, auth.Require)
//	route := telemetry.Route(telemetry.RouteOptions{ClientAddress: client.Addr})
//	server.Handler = otelhttp.NewHandler(route(api), "", otelhttp.WithServerName("api.example:443"))
//
// The program examples/telemetry exports all of this to Prometheus.
//
// The instruments, with the unit in parentheses:
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
//	gatehouse.engine.subjects           gauge (subject)
//	gatehouse.engine.capacity           gauge (subject)
//	gatehouse.engine.evictions          counter (subject)
//	gatehouse.engine.refusals           counter (subject)
//	gatehouse.failover.circuit          gauge (0 or 1)       gatehouse.state: closed, half_open, open
//	gatehouse.failover.pending          gauge (subject)
//	gatehouse.failover.fallbacks, .failures, .timeouts, .opened, .lost   counters
//	gatehouse.in_flight.requests        counter (request)    gatehouse.limiter, gatehouse.result
//	gatehouse.in_flight.running         gauge (request)      gatehouse.limiter
//	gatehouse.in_flight.waiting         gauge (request)      gatehouse.limiter
//	gatehouse.in_flight.subjects        gauge (subject)      gatehouse.limiter
//	gatehouse.redis.duration            histogram (s)
//	gatehouse.redis.batch_size          histogram (request)
//	gatehouse.panics                    counter (panic)
//
// gatehouse.result of a decision is allowed, limited, banned, suspended, or undecided if the
// engine returned an error. That of an authentication is the text of a
// [bearer.Outcome]. That of a limit on requests in progress is admitted or refused, and
// gatehouse.limiter is the name that the service gave it. gatehouse.window is the window
// of the applicable quota: second, minute, hour, day, month, local-day for the day in a
// time zone, or a number of seconds such as 900s, and empty if the request was not
// decided or the plan has no quotas. near_limit counts allowed requests that left at
// most a tenth of that quota.
//
// # Cardinality
//
// Clients cannot create series: no attribute has a subject, a host, a path, an address
// or a key. Names that come from settings and stored keys are bounded: 100 plans, 50
// windows, 400 pairs of both and 100 operations. Everything beyond has the value other.
//
// The metrics of otelhttp are not of this package: they have the Host field of each
// request, which any client can set, unless otelhttp.WithServerName names the server and
// its port.
//
// The span of a request has gatehouse.plan and gatehouse.result, and gatehouse.key.id,
// the public ID of its API key. Nothing has the key itself.
package telemetry
