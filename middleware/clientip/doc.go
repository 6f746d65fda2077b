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
// Anything a client can write into a header is worth nothing until a trusted
// proxy has confirmed it. That is why there is no constructor that takes the
// left-most address of X-Forwarded-For, and none that trusts everyone.
//
// # Limits and bans
//
// An address is a poor subject to count usage by: an ordinary IPv6 subscriber
// has at least 2^64 of them. [Network] and [Key] count an IPv4 client by its
// address and an IPv6 client by its /64 network.
//
// # Unix sockets
//
// A connection over a Unix socket has no address: RemoteAddr is "@" or a path.
// [Source.Addr] then returns the zero address, believes no header, and [Key] of
// it is "unknown": all such clients are counted together. A service whose proxy
// connects over a Unix socket that nobody else may open says so by giving these
// requests an address that it trusts, before this package sees them; the example
// of [FromXForwardedFor] shows how.
package clientip
