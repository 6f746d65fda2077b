package server

import (
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"time"
)

// Options holds what [New] can do without. The zero value works.
type Options struct {
	// CertFile and KeyFile hold the certificate, with its chain, and its key in
	// PEM. Both or neither; with them the server speaks TLS 1.2 and up, and HTTP/2.
	// When the files change, connections from then on have the new certificate, if
	// it is good; otherwise they keep the old one, and the log says why.
	CertFile, KeyFile string

	// TrustedProxies are the reverse proxies in front of the server. Naming them
	// allows plain HTTP on an address that is not loopback, and their connections
	// are not limited by network.
	TrustedProxies []netip.Prefix

	// PlainHTTP allows plain HTTP on an address that is not loopback all the same:
	// for a handler that takes no API keys, on a network that is private.
	PlainHTTP bool

	// MaxConns is the largest number of open connections. For one more, the
	// connection that has been idle for longest is closed; if every connection has
	// a request running, the new one waits. The server lowers MaxConns if the
	// process may not open as many files, and logs that. Zero: 8192.
	MaxConns int

	// MaxConnsPerNetwork is how many of them an IPv4 address or an IPv6 /64 may
	// have. Those beyond it are closed at once. Clients on a loopback address and
	// trusted proxies are exempt. Zero: 256.
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

	// DrainTimeout is for how long it then waits for running requests. Zero: 25s.
	DrainTimeout time.Duration

	// OnReady is called by Serve once [Server.Ready] reports true. It may be nil.
	OnReady func()

	// Logger gets what goes wrong outside of the handler. Nil: slog.Default.
	Logger *slog.Logger
}

func (o Options) validate() error {
	switch {
	case o.CertFile == "" && o.KeyFile != "":
		return errors.New("server: Options.CertFile: is empty while KeyFile is not")
	case o.CertFile != "" && o.KeyFile == "":
		return errors.New("server: Options.KeyFile: is empty while CertFile is not")
	case o.MaxConns < 0:
		return fmt.Errorf("server: Options.MaxConns: %d is negative", o.MaxConns)
	case o.MaxConnsPerNetwork < 0:
		return fmt.Errorf("server: Options.MaxConnsPerNetwork: %d is negative", o.MaxConnsPerNetwork)
	}
	for name, d := range map[string]time.Duration{
		"ReadHeaderTimeout": o.ReadHeaderTimeout, "ReadTimeout": o.ReadTimeout, "WriteTimeout": o.WriteTimeout,
		"IdleTimeout": o.IdleTimeout, "DrainDelay": o.DrainDelay, "DrainTimeout": o.DrainTimeout,
	} {
		if d < 0 {
			return fmt.Errorf("server: Options.%s: %v is negative", name, d)
		}
	}
	for i, p := range o.TrustedProxies {
		if !p.IsValid() {
			return fmt.Errorf("server: Options.TrustedProxies[%d]: is not valid", i)
		}
	}
	return nil
}

func (o Options) withDefaults() Options {
	orElse(&o.MaxConns, 8192)
	orElse(&o.MaxConnsPerNetwork, 256)
	orElse(&o.ReadHeaderTimeout, 5*time.Second)
	orElse(&o.ReadTimeout, 15*time.Second)
	orElse(&o.WriteTimeout, 30*time.Second)
	orElse(&o.IdleTimeout, 2*time.Minute)
	orElse(&o.DrainTimeout, 25*time.Second)
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return o
}

func orElse[T comparable](v *T, fallback T) {
	var zero T
	if *v == zero {
		*v = fallback
	}
}
