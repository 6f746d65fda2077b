package httpserver

import (
	"cmp"
	"log/slog"
	"net/netip"
	"time"
)

// Options are optional settings. The zero value works. Numbers and durations must not be
// negative, and networks must be valid, as package config makes sure.
type Options struct {
	// CertFile and KeyFile hold the certificate, with its chain, and its key in
	// PEM. Set both or neither. With them the server speaks TLS 1.2 or newer, and
	// HTTP/2. They are read by [New] and [Server.Reload].
	CertFile, KeyFile string

	// TrustedProxies are the reverse proxies in front of the server. Their connections
	// are not limited by network.
	TrustedProxies []netip.Prefix

	// MaxConns is the largest number of open connections. For one more, the
	// connection that has been idle for longest is closed; if every connection has
	// a request running, the new one waits. The server lowers MaxConns if the
	// process may not open as many files, and logs that. Zero: 8192.
	MaxConns int

	// MaxConnsPerNetwork is the largest number of open connections from one IPv4
	// address or IPv6 /64. Further ones are closed at once. Clients on a loopback
	// address and trusted proxies are exempt. Zero: 256.
	MaxConnsPerNetwork int

	ReadHeaderTimeout time.Duration // for the header section; zero: 5s
	ReadTimeout       time.Duration // for the whole request; zero: 15s
	WriteTimeout      time.Duration // from the end of the header section to that of the response; zero: 30s
	IdleTimeout       time.Duration // between two requests; zero: 2m

	// DrainDelay is how long the server keeps accepting connections after its
	// context has ended and it is no longer ready, so that load balancers notice.
	// Meanwhile each response closes its connection (Connection: close, or GOAWAY
	// in HTTP/2); idle connections stay open. Zero: listeners close at once.
	DrainDelay time.Duration

	// DrainTimeout is how long it then waits for running requests. Zero: 25s.
	DrainTimeout time.Duration

	// OnReady is called by Serve once [Server.Ready] reports true. It may be nil.
	OnReady func()

	// Logger gets errors outside of the handler. Nil: slog.Default.
	Logger *slog.Logger
}

func (o Options) withDefaults() Options {
	o.MaxConns = cmp.Or(o.MaxConns, 8192)
	o.MaxConnsPerNetwork = cmp.Or(o.MaxConnsPerNetwork, 256)
	o.ReadHeaderTimeout = cmp.Or(o.ReadHeaderTimeout, 5*time.Second)
	o.ReadTimeout = cmp.Or(o.ReadTimeout, 15*time.Second)
	o.WriteTimeout = cmp.Or(o.WriteTimeout, 30*time.Second)
	o.IdleTimeout = cmp.Or(o.IdleTimeout, 2*time.Minute)
	o.DrainTimeout = cmp.Or(o.DrainTimeout, 25*time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	return o
}

// reservedFiles is how many open files are reserved for other uses than connections,
// such as the database and another listener.
const reservedFiles = 192

// limits returns the limits on connections: MaxConns, or what the open files that the
// process may have leave. Otherwise Accept would fail before MaxConns is reached, and
// no idle connection would be closed.
func (o Options) limits() limits {
	l := limits{max: o.MaxConns, perNetwork: o.MaxConnsPerNetwork, proxies: o.TrustedProxies}
	if most := max(openFiles()-reservedFiles, 1); l.max > most {
		l.max = most
		o.Logger.Warn("lowered the limit on connections, because the process may not open enough files; raise ulimit -n",
			slog.String("setting", "max_connections"), slog.Int("configured", o.MaxConns), slog.Int("limit", most))
	}
	return l
}
