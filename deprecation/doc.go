// Package deprecation announces that an operation of an HTTP API is deprecated, and
// answers 410 once it is removed:
//
//	getPet, err := deprecation.New(deprecation.Options{
//		Since:     time.Date(2025, time.December, 5, 0, 0, 0, 0, time.UTC),
//		Sunset:    time.Date(2030, time.December, 5, 0, 0, 0, 0, time.UTC),
//		Successor: "/v1/pets?status=available",
//	})
//	...
//	mux.Handle("GET /v1/pets/{petId}", getPet.Enforce(showPet))
//
// Responses then have
//
//	Deprecation: @1764892800
//	Sunset: Thu, 05 Dec 2030 00:00:00 GMT
//	Link: </v1/pets?status=available>; rel="successor-version"
//
// in the syntax of RFC 9745 (Deprecation), RFC 8594 (Sunset) and RFC 8288 (Link).
// A client reads them with [FromResponse].
//
// Enforce is placed at the operation. Responses that are sent before the operation is
// reached, such as a 401, 405 or 429, do not have its headers. To set the headers there
// too, place [Declaration.Headers] around the whole API:
//
//	api = deprecation.OnPath("/v1/pets/{petId}", getPet.Headers)(api)
//
// Enforce and Headers also work alone. Together they set each header once.
package deprecation
