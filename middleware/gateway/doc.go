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
//	field                                           the client gets
//	X-RateLimit-* and RateLimit*                    those of middlewares; the backend's if there are none
//	Deprecation, Sunset, Access-Control-*           the same
//	X-Request-Id, Server, Strict-Transport-Security the same, each by itself
//	Link, Vary, Set-Cookie, Server-Timing           both
//	Alt-Svc                                         not the backend's, which names ports of the backend
//	others, such as Cache-Control and Retry-After   the backend's; those of middlewares if it sends none
//
// So a 429 of the backend has its own Retry-After, and says what the client has left of
// its plan here. Events, informational responses, trailers of responses and upgrades over
// HTTP/1.1 pass, except trailers with the name of a field that a middleware has set, and
// upgrades to h2c, HTTP or TLS, after which requests would pass no middleware. gRPC passes
// over an HTTP/2 Transport, but its clients see a 429 as UNAVAILABLE: limit it in the
// service, with gatehousegrpc.
//
// # Errors
//
// If there is no response to pass on, the client gets an error in the envelope, and the
// cause is logged:
//
//	bad_gateway      502  the backend cannot be reached, or its response is not usable
//	unavailable      503  the Transport keeps to a limit of the backend, see New; with Retry-After
//	gateway_timeout  504  the backend did not answer in time, or a deadline has passed
//	invalid_body     400  the client did not send its whole body
//	invalid_request  400  New refuses the target, method or Upgrade field; 431 if the header is too long
//
// An [*apierror.Error] of [middleware.BodyLimit] or ModifyResponse is sent as it is.
// Errors of the backend pass unchanged. If the client is gone, the log says so.
//
// With limit.NotServerError as limit.Options.ChargeIf, a 5xx is given back, and so is a response that
// the backend breaks off. Another ChargeIf can give back a 429 of the backend. An upload of which the
// backend has left more than 256 KiB unread stays charged: its client may have disconnected.
//
// # Requests
//
// The backend gets the ID of [middleware.RequestID] as X-Request-Id. Unless Rewrite removes
// them, it gets credentials, X-Real-IP and X_Forwarded_For, with underscores, as the client
// sent them. SetXForwarded names the address of the connection. Behind other proxies, send
// the address that package clientip finds; the backend then trusts only the gateway:
//
//	p.Out.Header.Set("X-Forwarded-For", source.Addr(p.In).String())
package gateway
