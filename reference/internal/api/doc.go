// Package api is the HTTP API of the pets service as one [http.Handler]: the
// operations, and in front of them the gate that every request passes.
//
//	handler, err := api.New(api.Config{
//		Config:  settings,
//		Pets:    db,
//		Keys:    db,
//		Limiter: limiter,
//		Plan:    settings.Plans.Of,
//	})
//
// # The way of a request
//
// A request passes these steps in order until one of them answers it:
//
//	request ID, log, panics, security headers
//	Deprecation, Sunset and Link     on the path of a deprecated operation
//	CORS                             answers preflights: 204, 429
//	the site                         /openapi.json, /docs and /.well-known/api-catalog,
//	                                 without a key: 429, 414, 412, 304
//	authentication                   adds the principal and refuses nothing yet
//	ban and quota              429   of the owner of the key and, if it has limits of its own,
//	                                 of the key; or else of the network
//	length of the target       414
//	key                        401   on all paths below /v1, whether they exist or not; 400 if there are two
//	path                       404
//	removed operations         410
//	method                     405   and OPTIONS
//	Idempotency-Key            400   if it is malformed
//	media type, size, content  415, 413, 400
//	existence of the item      404
//	preconditions              304, 412; 412 to any with POST
//	use of the Idempotency-Key 422   if it was for another request; 201 if for the same one
//
// A request that ends in a 5xx is refunded, unless the client disconnected before it
// was answered or its body could not be read.
//
// GET /v1/usage is not charged and passes bans. Requests that are not charged, those
// for the site and CORS preflights among them, have a quota of their own
// ([Config.Uncharged]).
//
// If Config.Pets is a [store.PetsVersioner], lists and pets are kept in memory, up to 16
// MiB and 4096 of them, and served until the store may have changed. A response never
// misses a pet that this server acknowledged before the request, or that another server
// of the same file acknowledged more than 10 milliseconds before it.
//
// Every response has X-RateLimit-Limit, -Remaining and -Reset, except under a plan without
// quotas, and for responses that net/http writes: 400 to malformed HTTP, 417 to an unknown
// Expect, 431 to a header section that is too large, 501 to an unknown Transfer-Encoding and
// 505 to another version of HTTP.
package api
