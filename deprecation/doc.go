// Package deprecation announces that an operation of an HTTP API is deprecated,
// answers 410 once it is removed, and reports the requests that still use it.
//
// A [Declaration] says since when an operation is deprecated, when it is
// removed, and where to read more. It is made and checked once, and then used in
// two places:
//
//	getPet, err := deprecation.New(since, deprecation.Options{
//		Sunset:    time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC),
//		Successor: "/v1/pets?status=available",
//	})
//	...
//	mux.Handle("GET /v1/pets/{petId}", getPet.Handler(showPet))
//
//	var api http.Handler = mux
//	api = requireKey(limit(api))
//	api = deprecation.OnPath("/v1/pets/{petId}", getPet.Announce)(api)
//
// [Declaration.Handler] stands at the operation. [Declaration.Announce] stands
// further out, so that a 401, a 405 or a 429 for the same path, given before the
// operation is reached, carries the fields too. Each works without the other, and
// together they write each field once. The response then has
//
//	Deprecation: @1764892800
//	Sunset: Thu, 05 Dec 2030 00:00:00 GMT
//	Link: </v1/pets?status=available>; rel="successor-version"
//
// in the syntax of RFC 9745 (Deprecation), RFC 8594 (Sunset) and RFC 8288
// (Link) with the relation types deprecation (RFC 9745), sunset (RFC 8594) and
// successor-version (RFC 5829).
//
// A client reads the same fields with [FromResponse].
//
// Before the sunset Announce and Handler each read the clock and write three
// entries in the header. A declaration with links also wraps the ResponseWriter,
// so that a handler's own Link field does not replace its links. The wrapper
// supports [net/http.ResponseController], and is the only allocation.
package deprecation
