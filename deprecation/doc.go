// Package deprecation takes an operation of an HTTP API out of service in the
// open: it announces the deprecation on every response, answers 410 from the
// day of the removal on, and reports who still calls.
//
// A [Declaration] says since when an operation is deprecated, when it is
// removed, and where to read more. It is made once, checked when it is made,
// and then used in two places:
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
// outside, so that a 401, a 405 or a 429 for the same path, given before the
// operation is reached, carries the fields too. Either is enough by itself, and
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
// A client reads the same fields with [FromResponse], to be told in time.
//
// Before the sunset a request costs the reading of a clock and three entries in
// the header; nothing is allocated.
package deprecation
