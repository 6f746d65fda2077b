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
	// a request running, the new one waits. The process must be allowed to open
	// some more files than that (ulimit -n). Zero: 8192.
	MaxConns int

	// MaxConnsPerNetwork is the largest number of open connections from one IPv4
	// address or IPv6 /64. Further ones are closed immediately. Clients on a loopback
	// address and trusted proxies are exempt. Zero: 256.
	MaxConnsPerNetwork int

	ReadHeaderTimeout time.Duration // for the header section; zero: 5s
	ReadTimeout       time.Duration // for the whole request; zero: 15s
	WriteTimeout      time.Duration // from the end of the header section to the end of the response; zero: 30s
	IdleTimeout       time.Duration // between two requests; zero: 2m

	// DrainDelay is how long the server keeps accepting connections after its
	// context has ended and it is no longer ready, so that load balancers notice.
	// Meanwhile each response closes its connection (Connection: close, or GOAWAY
	// in HTTP/2); idle connections stay open. Zero: listeners close immediately.
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
