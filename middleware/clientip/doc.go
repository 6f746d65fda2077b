// Package clientip finds the address of the client that sent a request, and the
// network that its requests are counted for.
//
// A service that clients reach directly reads the address of the connection:
//
//	source := clientip.FromRemoteAddr()
//	addr := source.Addr(r)
//
// A service behind reverse proxies names their addresses, and trusts only headers from
// these addresses:
//
//	source, err := clientip.FromXForwardedFor([]netip.Prefix{
//		netip.MustParsePrefix("10.0.0.0/8"),
//	})
//
// [FromForwarded] is for proxies that send Forwarded (RFC 7239), and [FromHeader] for
// a proxy that sends a single address, such as X-Real-IP.
//
// Any client can write a header, so an address in one counts only if a trusted proxy
// has added it. Therefore no constructor takes the left-most address of
// X-Forwarded-For, and none trusts every peer. If a trusted proxy sent no header, or
// something that is not an address, the request counts for the proxy, and
// [Source.Resolve] returns an error that says so.
//
// An address alone is a poor subject of a limit or a ban: an ordinary IPv6 subscriber
// has at least 2^64 of them. [NetworkSubject] counts an IPv4 client by its address, also
// behind NAT64 (RFC 6052), and an IPv6 client by its /64 network; [Source.WithIPv6Prefix] takes
// another prefix.
package clientip
