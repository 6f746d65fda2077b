// Package limit limits the requests to HTTP handlers. One line each is enough to begin:
//
//	r.Use(limit.ByIP(ratelimit.PerMinute(100)))                                  // the client's network
//	r.Use(limit.ByUser(userOf, ratelimit.PerMinute(60), ratelimit.PerDay(1000))) // a user, after authentication
//	r.Use(limit.ByPlan(planOf))                                                  // users with different plans, and bans
//	r.Use(limit.Behind("10.0.0.0/8").ByIP(ratelimit.PerMinute(100)))             // behind reverse proxies
//
// Each function returns a net/http middleware. It sets X-RateLimit-Limit, -Remaining and
// -Reset on every response, and answers a request beyond a quota with 429 and Retry-After.
// A request is charged to all quotas or, if it is denied, to none. Bans are part of plans.
// The arguments are part of the program, so these functions panic if they are wrong.
//
// Responses sent outside of the middleware are not counted. Examples are a 401, if the
// authentication refuses requests before they get there, and the 404 of an unknown path in a
// group of a router. [New] says which order counts these too.
//
// Each call makes an engine of its own (package memory: a million subjects at most, that is
// users or networks, of about 44 bytes each). To count several routes together, use the
// result of one call for all of them; a request that passes it twice is charged twice. Each
// process counts for itself.
//
// # How to grow
//
// ByPlan(planOf) is short for
//
//	limiter, err := memory.New(memory.Options{})
//	...
//	byPlan, err := limit.New(limiter, limit.Addresses{}.Identify(planOf), limit.Options{})
//
// Write these lines instead, and then change the part that you need to:
//
//   - the engine: limits shared by processes (redislimit), usage that survives a restart
//     (memory.Open), bans made by hand (Ban, Unban);
//   - the function, around the one that Identify returns or alone: several subjects for one request, an
//     error as the answer, an API key's own plan (apikey);
//   - the number of limits: a second one on the same engine, such as a smaller one for
//     /search, needs an Options.Name, and then counts and bans apart from the first;
//   - the [Options]: costs, refunds, metrics, shadow mode, other header fields, responses of
//     your own.
package limit
