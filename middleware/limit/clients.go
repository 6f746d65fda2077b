package limit

import (
	"cmp"
	"fmt"
	"log/slog"
	"net/http"
	"net/netip"
	"sync/atomic"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// Clients says where the address of a client comes from. The zero value takes that of the
// connection, as the functions of this package do. [Behind] is for reverse proxies that
// send X-Forwarded-For, and Clients{Source: source} for any other [clientip.Source].
type Clients struct {
	Source *clientip.Source // nil means clientip.FromRemoteAddr()
}

// Behind is for services behind one or more reverse proxies, each of which adds the address
// of its own client at the end of X-Forwarded-For. It takes the networks or the addresses
// of all of these proxies, such as "10.0.0.0/8" or "192.0.2.7", and believes the header
// only from them; see [clientip.FromXForwardedFor]. A proxy that connects over a Unix
// socket has no address; see [clientip.Source]. Behind panics if a text is not a network,
// or if there are none.
//
// Without Behind, or with other networks than that of the proxy, all clients of a proxy are
// counted as one, and so they are if the proxy sends no X-Forwarded-For. The functions of
// this package log a warning (slog.Default) at the first request that seems to come from an
// unknown proxy (from a private address with X-Forwarded-For or Forwarded, or over a Unix
// socket), and at the first one from a known proxy that does not name its client.
func Behind(proxies ...string) Clients {
	prefixes, err := clientip.ParsePrefixes(proxies)
	if err != nil {
		panic(fmt.Errorf("limit.Behind: %w", err))
	}
	source, err := clientip.FromXForwardedFor(prefixes)
	if err != nil {
		panic(fmt.Errorf("limit.Behind: %w", err))
	}
	return Clients{source}
}

// networks returns the function that names the network of a request's client.
func (c Clients) networks() func(*http.Request) string {
	var unknown, unnamed atomic.Bool // a warning was logged about such a proxy, or such a client
	peer := clientip.FromRemoteAddr()
	source := cmp.Or(c.Source, peer)
	return func(r *http.Request) string {
		addr, err := source.Resolve(r)
		switch {
		case err != nil:
			if !unnamed.Load() && !unnamed.Swap(true) {
				slog.WarnContext(r.Context(), "limit: a request from a trusted proxy does not name its client, and counts for the proxy",
					"proxy", r.RemoteAddr, "error", err)
			}
		case !unknown.Load() && fromProxy(addr, r.Header) && addr == peer.Addr(r) && !unknown.Swap(true):
			slog.WarnContext(r.Context(), "limit: all clients of this proxy are counted as one; see limit.Behind",
				"proxy", r.RemoteAddr)
		}
		return clientip.NetworkSubject(addr)
	}
}

// fromProxy reports whether a request seems to come from a reverse proxy. A client that the
// service sees at a public address may have written the headers itself, so that they say
// nothing there.
func fromProxy(peer netip.Addr, h http.Header) bool {
	switch {
	case !peer.IsValid(): // a Unix socket
		return true
	case !peer.IsPrivate() && !peer.IsLoopback():
		return false
	}
	return h["X-Forwarded-For"] != nil || h["Forwarded"] != nil
}
