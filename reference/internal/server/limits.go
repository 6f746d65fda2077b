package server

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// limits are how many connections may be open, in total and for each network other
// than the proxies'.
type limits struct {
	max, perNetwork int
	proxies         []netip.Prefix
}

func (o Options) limits() *limits {
	return &limits{max: o.maxConns(), perNetwork: o.MaxConnsPerNetwork, proxies: o.TrustedProxies}
}

// setLimits changes the limits. Connections over a lower limit close as they would
// make room for others.
func (l *limitListener) setLimits(to *limits) {
	l.limits.Store(to)
	l.signalRoom()
}

// networkOf returns the network of c, or zero if c is not limited by network: clients
// on this machine and trusted proxies.
func (l *limits) networkOf(c net.Conn) netip.Prefix {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.IsLoopback() || slices.ContainsFunc(l.proxies, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return netip.Prefix{}
	}
	return clientip.Network(addr)
}

// reservedFiles is how many open files are reserved for other uses than connections,
// such as the database and another listener.
const reservedFiles = 192

// maxConns returns the limit on connections: MaxConns, or what the open files that the
// process may have leave. Otherwise Accept would fail before MaxConns is reached, and
// no idle connection would be closed.
func (o Options) maxConns() int {
	most := max(openFiles()-reservedFiles, 1)
	if o.MaxConns <= most {
		return o.MaxConns
	}
	o.Logger.Warn("lowered the limit on connections, because the process may not open enough files; raise ulimit -n",
		slog.String("setting", "max_connections"), slog.Int("configured", o.MaxConns), slog.Int("limit", most))
	return most
}
