// Package bearer authenticates HTTP requests by the token in
//
//	Authorization: Bearer <token>
//
// as RFC 6750 and RFC 9110 section 11 have it. A function of the service tells
// what a token is worth, and handlers get its answer with the type it has:
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
// A rate limiter wants to know who is calling, and has to count those who are
// refused. So the two halves of [Authenticator.Protect] can be had apart: what
// stands between [Authenticator.Identify] and [Authenticator.Require] sees every
// request, with its [Outcome] and principal in the context.
//
//	handler = auth.Identify(limit(auth.Require(handler)))
//
// # What is refused
//
// The field is read strictly. The scheme may be in any case, one or more spaces
// follow, then one b64token (RFC 6750 section 2.1) of bounded length, and nothing
// else. A second Authorization line is refused even if it is equal. Tokens in the
// query, in forms and in cookies are not looked at.
//
//	outcome      status  WWW-Authenticate
//	Missing      401     Bearer realm="pets"
//	Invalid      401     Bearer realm="pets", error="invalid_token", error_description="..."
//	Unavailable  503     none, but Retry-After
//
// The request's body is not touched, no part of a token is ever repeated, and
// the answer does not tell why a token is not valid.
//
// A bearer token is a secret that goes with every request: serve it over TLS
// only (RFC 6750 section 5.3).
package bearer
