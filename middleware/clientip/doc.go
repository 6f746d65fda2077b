// Package clientip tells the address of the client that sent a request, and
// the network it is counted under.
//
// A service that clients reach directly reads the address of the connection:
//
//	source := clientip.FromRemoteAddr()
//	addr := source.Addr(r)
//
// A service behind reverse proxies names their addresses, and only what these
// proxies say is believed:
//
//	source, err := clientip.FromXForwardedFor([]netip.Prefix{
//		netip.MustParsePrefix("10.0.0.0/8"),
//	})
//
// Proxies that send Forwarded (RFC 7239) are served by [FromForwarded], and one
// that sends a single address, as X-Real-IP is, by [FromHeader].
//
// Any client can write a header, so an address in one counts only if a trusted
// proxy has added it. That is why there is no constructor that takes the
// left-most address of X-Forwarded-For, and none that trusts every peer.
//
// A request whose header a trusted proxy left out, or filled with something that
// is not an address, counts for the proxy. A service sees that by calling
// [Source.Resolve] in place of [Source.Addr]:
//
//	addr, err := source.Resolve(r)
//	if err != nil {
//		logger.Warn("client address unknown", "error", err)
//	}
//
// # Limits and bans
//
// An address is a poor subject to count usage by: an ordinary IPv6 subscriber
// has at least 2^64 of them. [Network] and [NetworkSubject] count an IPv4 client by its
// address, also behind NAT64 (RFC 6052), and an IPv6 client by its /64 network.
//
// # Unix sockets
//
// A connection over a Unix socket has no address: RemoteAddr is "@" or a path.
// [Source.Addr] then returns the zero address, believes no header, and
// [NetworkSubject] of it is "network:unknown": all such clients are counted together. If only the proxy may
// open the Unix socket, the service can give these requests an address that it
// trusts before this package sees them; the example of [FromXForwardedFor] shows
// how.
package clientip
