// Package bearer authenticates HTTP requests by the token in
//
//	Authorization: Bearer <token>
//
// as RFC 6750 and RFC 9110 section 11 specify it. A function of the service
// verifies the token and returns a principal, which handlers get with its type:
//
//	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{})
//	if err != nil {
//		return err
//	}
//	mux.Handle("GET /v1/pets", auth.Protect(http.HandlerFunc(
//		func(w http.ResponseWriter, r *http.Request) {
//			principal, _ := bearer.FromContext[apikey.Principal](r.Context())
//			...
//		})))
//
// # Between identifying and requiring
//
// A rate limiter needs to know the caller, and must also count the requests that
// are refused. [Authenticator.Protect] therefore comes in two halves: a handler
// between [Authenticator.Identify] and [Authenticator.Require] sees every
// request, with its [Outcome] and principal in the context.
//
//	handler = auth.Identify(limit(auth.Require(handler)))
//
// # What is refused
//
// The field is read strictly: the scheme in any case, one or more spaces, one
// b64token (RFC 6750 section 2.1) of bounded length, and nothing else. A second
// Authorization line is refused even if it is equal to the first. Tokens in the
// query, in forms and in cookies are ignored.
//
//	outcome      status  code             WWW-Authenticate
//	Missing      401     missing_api_key  Bearer realm="pets"
//	Invalid      401     invalid_api_key  Bearer realm="pets", error="invalid_token", error_description="..."
//	Repeated     400     invalid_request  Bearer realm="pets", error="invalid_request", error_description="..."
//	Unavailable  503     unavailable      none, but Retry-After
//
// The package does not read the request's body, and never repeats any part of a
// token. A 401 does not say why a token is not valid; [Options.Observe] is given
// the reason. A token that is refused for its length alone is also logged.
//
// A bearer token is a secret that goes with every request: serve it over TLS
// only (RFC 6750 section 5.3).
package bearer
