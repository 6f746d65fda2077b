// Package bearer authenticates HTTP requests by the token in
//
//	Authorization: Bearer <token>
//
// A function of the service verifies the token and returns a principal, which handlers
// get with its type:
//
//	auth, err := bearer.New("pets", verifier.Verify, bearer.Options{})
//	...
//	mux.Handle("GET /v1/pets", auth.Protect(http.HandlerFunc(
//		func(w http.ResponseWriter, r *http.Request) {
//			principal, _ := bearer.FromContext[apikey.Principal](r.Context())
//			...
//		})))
//
// Protect is [Authenticator.Identify] and [Authenticator.Require] in one. A rate
// limiter between the two knows the caller and also counts refused requests:
//
//	handler = auth.Identify(limit(auth.Require(handler)))
//
// Require answers (RFC 6750, RFC 9110 section 11)
//
//	outcome      status  code             WWW-Authenticate
//	Missing      401     missing_api_key  Bearer realm="pets"
//	Invalid      401     invalid_api_key  Bearer realm="pets", error="invalid_token", error_description="..."
//	Repeated     400     invalid_request  Bearer realm="pets", error="invalid_request", error_description="..."
//	Unavailable  503     unavailable      none, but Retry-After
//	Refused      as the error of the verify function says, such as 429 of apikey.Verifier
//
// With [Options.ResourceMetadata] each challenge ends in resource_metadata="https://...", so that
// clients of OAuth find out where to get a token (RFC 9728).
//
// A bearer token is a secret that is sent with every request: serve it over TLS only
// (RFC 6750 section 5.3).
package bearer
