// Package gateway puts the middlewares of an API in front of any backend, through an
// [httputil.ReverseProxy]:
//
//	backend, err := gateway.New(&httputil.ReverseProxy{
//		Rewrite: func(p *httputil.ProxyRequest) {
//			p.SetURL(target)
//			p.SetXForwarded()
//			p.Out.Header.Del("Authorization") // the API key stays here
//		},
//	}, errs)
//	...
//	handler := auth.Identify(limit(auth.Require(backend)))
//
// A ReverseProxy alone sends clients two values of each field that a middleware and the
// backend have set. If the backend sends an informational response, such as the 100 that
// every large upload with curl asks for, it loses all fields of middlewares. Behind New:
//
//	field                                    the client gets
//	X-RateLimit-* and RateLimit*             those of middlewares; the backend's if there are none
//	Deprecation and Sunset                   the same
//	Access-Control-*                         the same
//	X-Request-Id, Server, and                the same, each by itself
//	  Strict-Transport-Security
//	Link, Vary, Set-Cookie, Server-Timing    both
//	Alt-Svc                                  not the backend's, which names ports of the backend
//	all others, such as Cache-Control,       the backend's; those of middlewares if it sends none,
//	  Retry-After, Content-Security-Policy     as with any handler
//
// So a 429 of the backend has its own Retry-After, and says what the client has left of
// its plan here. Upgrades (over HTTP/1.1), events, trailers and informational responses
// pass.
//
// # Errors
//
// If there is no response to pass on, the client gets an error in the envelope, and the
// cause is logged:
//
//	bad_gateway      502  the backend cannot be reached, or its response is not usable
//	gateway_timeout  504  the backend did not answer in time, or a deadline has passed
//	invalid_body     400  the client did not send its whole body
//	invalid_request  400  the client asks for an upgrade to a malformed protocol
//
// A request that its client abandons ends with one of them too, and is logged as
// abandoned. An [*apierror.Error] is sent as it is: of middleware.BodyLimit, or of ModifyResponse,
// which can replace a response of the backend in this way. Errors that the backend sends
// pass unchanged. With ratelimit.Options.Refund, every 5xx is given back, and so is a
// response that the backend breaks off; a 429 of the backend, with Options.ChargeIf.
//
// # Requests
//
// The ID of [middleware.RequestID] is sent to the backend as X-Request-Id. Credentials
// are sent on unless Rewrite removes them. SetXForwarded names the address of the
// connection. Behind other proxies, send the backend what package clientip finds:
//
//	p.Out.Header.Set("X-Forwarded-For", source.Addr(p.In).String())
//
// The backend then trusts the gateway only.
package gateway
