// Package apierror writes every error of an HTTP API in one envelope:
//
//	{"code":"pet_not_found","message":"There is no pet with this identifier.","status":404}
//
// Handlers return errors, and one [Responder] knows how they look on the wire:
//
//	var rs apierror.Responder // the zero value works
//
//	mux := http.NewServeMux()
//	mux.Handle("GET /v1/pets/{petId}", rs.Handle(func(w http.ResponseWriter, r *http.Request) error {
//		pet, err := pets.Find(r.Context(), r.PathValue("petId"))
//		if err != nil {
//			return err // an *Error inside it is sent to the client, anything else is "internal"
//		}
//		return json.NewEncoder(w).Encode(pet)
//	}))
//	http.ListenAndServe(addr, rs.Recover(rs.Mux(mux)))
//
// # What is public
//
// Only an [Error] has public text. It is found in what a handler returns by
// [errors.As], so it may be wrapped or joined; the text around it goes only to
// the log. An error without an Error inside is private as a whole: it is logged,
// and the client gets status 500 with the code "internal".
//
// # Codes
//
// A code is never changed once it is published. A service adds its own beside
// these.
//
//	code                    status  when
//	invalid_body            400     the body is malformed or breaks its schema
//	invalid_parameter       400     a query parameter is malformed, out of range or repeated
//	invalid_request         400     the Authorization header is there more than once
//	cost_exceeds_limit      400     the request costs more than a quota of the plan allows
//	missing_api_key         401     no credentials were sent
//	invalid_api_key         401     the credentials are malformed, unknown, expired or revoked
//	not_found               404     nothing is at this path
//	pet_not_found           404     the path is right, the pet in it does not exist
//	method_not_allowed      405     the path exists, the method does not; see Allow
//	operation_removed       410     the operation existed and is past its sunset
//	precondition_failed     412     If-Match or another precondition is false
//	body_too_large          413     the body exceeds the limit
//	uri_too_long            414     the request target exceeds the limit
//	unsupported_media_type  415     the body's media type or coding is not accepted; see Accept, Accept-Encoding
//	rate_limit_exceeded     429     a quota is used up; see Retry-After
//	api_key_banned          429     the key's owner is temporarily banned; see Retry-After
//	client_banned           429     the client's network is temporarily banned; see Retry-After
//	internal                500     the service failed; the cause is in its log
//	unavailable             503     the service cannot answer at the moment; see Retry-After
//
// # On the wire
//
// Every error has Content-Type, Content-Length, Cache-Control: no-store (404,
// 405, 410, 414 and 501 could be cached without it, RFC 9111 section 4.2.2),
// X-Content-Type-Options: nosniff and Vary: Accept. The answer to HEAD has the
// header section of GET and no body. Fields that were set before, such as
// Allow, Retry-After, WWW-Authenticate or X-RateLimit-Limit, are kept. Fields
// that belong to the response which the error replaces are dropped:
//
//   - those that describe its content, such as Content-Range (unless the error is
//     a 416 with the length, "bytes */1234"), Content-Disposition, ETag,
//     Last-Modified, Digest and Repr-Digest, and its signature (RFC 9421);
//   - those that say how to cache it: Age, Expires, No-Vary-Search,
//     Surrogate-Control, X-Accel-Expires, and all whose name ends in
//     -Cache-Control (RFC 9213);
//   - X-Accel-Redirect and X-Sendfile, which have a proxy send a file instead.
//
// A client whose Accept field prefers application/problem+json gets the same
// error as problem details (RFC 9457):
//
//	{"type":"about:blank","title":"Bad Request","status":400,"detail":"The body breaks its schema.",
//	 "code":"invalid_body","errors":[{"pointer":"/name","detail":"is required"}]}
//
// The type is about:blank unless the error has another: see [Problem]. Denials of
// a rate limit have those of draft-ietf-httpapi-ratelimit-headers-11.
//
// The envelope is the default: it is sent without Accept, on a tie, and to
// clients that accept neither (RFC 9110 section 12.4.1 allows it).
//
// Errors that net/http writes before it calls any handler, for a malformed
// request line or an oversized header section, are outside this package.
//
// # In the log
//
// Causes are logged with request_id, method, route (the pattern of
// [http.ServeMux]), status, code and error. Errors of the service (5xx) and
// panics have level Error; causes of 4xx, and requests whose client went away,
// have level Info. An Error without a cause is an answer, not an incident, and
// is not logged. Neither header fields nor the request target are ever logged.
package apierror
