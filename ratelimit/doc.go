// Package ratelimit limits how much each client of a service may use. It holds the
// vocabulary that all engines share, and the net/http middleware:
//
//	free := ratelimit.MustPlan("free", ratelimit.DefaultPenalty(),
//		ratelimit.PerMinute(60), ratelimit.PerDay(1000))
//	engine, err := memory.New(memory.Options{})
//	limit, err := ratelimit.New(engine, func(r *http.Request) (ratelimit.Caller, error) {
//		return ratelimit.Caller{Subject: "owner:" + ownerOf(r), Plan: free}, nil
//	}, ratelimit.Options{})
//	http.ListenAndServe(addr, limit(api))
//
// [Limiter.Take] decides one request. At 12:00:43 UTC an owner has used 59 units of
// this minute and 400 of this day, and sends two requests of one unit each:
//
//	                     first                         second
//	Outcome              Allowed                       Limited: nothing is charged
//	States[0] (minute)   0 of 60 left, until 12:01:00  0 of 60 left, until 12:01:00
//	States[1] (day)      599 of 1000, until 24:00:00   599 of 1000, until 24:00:00
//	Applicable           0, the minute                 0, the minute
//	RetryAfter           0                             17s
//	headers              X-RateLimit-Limit: 60         the same, and Retry-After: 17
//	                     X-RateLimit-Remaining: 0
//	                     X-RateLimit-Reset: 1772366460
//
// Package memory is the engine to start with. Package redislimit shares limits
// between processes, and package failover guards it against outages.
package ratelimit
