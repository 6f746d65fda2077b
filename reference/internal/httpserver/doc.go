// Package httpserver serves a handler over HTTP on a public network. It limits the time, the
// size and the number of connections that a client can use, reloads TLS certificates
// when their files change, and finishes running requests before it stops.
//
//	s, err := httpserver.New(handler, httpserver.Options{CertFile: cert, KeyFile: key})
//	...
//	l, err := net.Listen("tcp", address)
//	...
//	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
//	defer stop()
//	err = s.Serve(ctx, l) // until the signal, and until the last response after it
//
// [Server.Reload] replaces the handler and the options while the server serves.
//
// # What clients can do at most
//
// Unless the options say otherwise, a header section takes 5 seconds, a request 15
// seconds, a response 30 seconds from the end of the header section on; an idle
// connection is closed after 2 minutes. A header section has at most 64 KiB. Requests
// that break HTTP are answered by net/http in plain text, and close the connection.
//
// By default, at most 8192 connections are open. To accept one more, the server closes
// the connection that has been idle longest. A network, which is an IPv4 address or an
// IPv6 /64, has at most 256 connections; loopback addresses and trusted proxies are
// exempt. The log says how many connections were closed or refused, at most once a
// minute.
//
// Frames of HTTP/2 that are not requests are bounded only as net/http does it: it closes a
// connection with many resets or unread answers. Other frames have no bound, since each costs
// a sixth of a request that is refused.
//
// # Where a request ends
//
// A request with both Content-Length and Transfer-Encoding, or with
// Transfer-Encoding in HTTP/1.0, is read by Transfer-Encoding (Content-Length in
// HTTP/1.0), and the connection is closed after the response, as RFC 9112 section
// 6.1 demands. In HTTP/1.1 over TLS the server cannot see that there were both, and
// keeps the connection open. That matters only behind a proxy that speaks HTTP/1.1
// over TLS to this server, passes on both fields, and reads the request by
// Content-Length itself: a client of such a proxy can put a request of its own in
// front of another client's. A proxy must not pass on both fields (RFC 9112
// section 6.3).
package httpserver
