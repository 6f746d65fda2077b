// Package httpserver serves a handler over HTTP on a public network. It limits the time, the
// size and the number of connections that a client can use, replaces its handler and its
// certificate while it serves, and finishes running requests before it stops.
//
//	s, err := httpserver.New(handler, httpserver.Options{CertFile: cert, KeyFile: key})
//	...
//	l, err := net.Listen("tcp", address)
//	...
//	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, os.Interrupt)
//	defer stop()
//	err = s.Serve(ctx, l) // until the signal, and until the last response after it
//
// # Limits on clients
//
// Unless the options say otherwise, a header section may take 5 seconds, a request 15 seconds,
// and a response 30 seconds from the end of the header section on. An idle connection is closed
// after 2 minutes. A header section has at most 64 KiB. Requests that break HTTP are answered
// by net/http in plain text, and close the connection.
//
// By default, at most 8192 connections are open. To accept one more, the server closes
// the connection that has been idle longest. A network, which is an IPv4 address or an
// IPv6 /64, has at most 256 connections; loopback addresses and trusted proxies are
// exempt.
//
// The connection closes after a chunked request and after one of HTTP/1.0.
//
// Frames of HTTP/2 that are not requests are bounded only as net/http does it: it closes a
// connection with many resets or unread answers. Other frames have no bound, since each costs
// a sixth of a request that is refused.
package httpserver
