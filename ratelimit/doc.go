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
// [Limiter.Take] decides a request. Start with package memory; redislimit shares limits
// between processes, and failover guards it against outages.
package ratelimit
