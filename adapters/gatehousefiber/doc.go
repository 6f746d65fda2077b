// Package gatehousefiber limits the requests of a Fiber service:
//
//	limit, err := gatehousefiber.New(engine, func(c fiber.Ctx) (ratelimit.Caller, error) {
//		return ratelimit.Caller{Subject: "user:" + userOf(c), Plan: free}, nil
//	}, gatehousefiber.Options{Refund: true})
//	app.Use(limit)
//
// Fiber runs handlers outside net/http. Its adaptor.HTTPMiddleware calls a middleware
// of net/http before the handlers of Fiber, not around them, with a ResponseWriter and a
// request that the handlers do not use: a recovery, a refund, an access log or a limit
// of requests in progress seems to work and sees nothing. Therefore no other middleware
// of Gatehouse works in Fiber: [New] runs that of package ratelimit with a request and a
// response made from those of Fiber. For everything else, put a gateway of net/http in
// front of the service, or serve it with a router of net/http.
//
// With Prefork each process has an engine of its own, and a client may use the limit once
// in each. Share one with package redislimit.
//
// [ClientAddr] finds the address of a client behind proxies. c.IP() is that of the proxy
// or, with TrustProxy, what the field ProxyHeader says, and X-Forwarded-For begins with
// what the client sent.
package gatehousefiber
