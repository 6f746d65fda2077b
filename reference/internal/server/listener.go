package server

import (
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// limitListener bounds how many connections are open, altogether and for each
// network.
type limitListener struct {
	net.Listener
	logger     *slog.Logger
	proxies    []netip.Prefix
	perNetwork int

	slots  chan struct{} // holds one element for each open connection
	closed chan struct{}
	close  sync.Once

	mu    sync.Mutex
	conns map[netip.Prefix]int // open connections; no zeros
}

func newLimitListener(l net.Listener, o Options) *limitListener {
	return &limitListener{
		Listener:   l,
		logger:     o.Logger,
		proxies:    o.TrustedProxies,
		perNetwork: o.MaxConnsPerNetwork,
		slots:      make(chan struct{}, o.MaxConns),
		closed:     make(chan struct{}),
		conns:      make(map[netip.Prefix]int),
	}
}

// Accept waits for a free slot first: the kernel keeps those who wait, up to its
// backlog, at less cost than this process could refuse them.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		select {
		case l.slots <- struct{}{}:
		case <-l.closed:
			return nil, net.ErrClosed
		}
		c, err := l.Listener.Accept()
		if err != nil {
			<-l.slots
			return nil, err
		}
		network, ok := l.admit(c)
		if ok {
			return &limitedConn{Conn: c, release: func() { l.release(network) }}, nil
		}
		l.logger.Debug("connection refused: too many from its network", slog.Any("network", network))
		c.Close()
		<-l.slots
	}
}

// admit counts c for its network, unless that has its share. The network is zero
// if c is not counted.
func (l *limitListener) admit(c net.Conn) (netip.Prefix, bool) {
	tcp, ok := c.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}, true
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if slices.ContainsFunc(l.proxies, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return netip.Prefix{}, true
	}
	network := clientip.Network(addr)
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.conns[network] >= l.perNetwork {
		return network, false
	}
	l.conns[network]++
	return network, true
}

func (l *limitListener) release(network netip.Prefix) {
	if network.IsValid() {
		l.mu.Lock()
		if l.conns[network]--; l.conns[network] == 0 {
			delete(l.conns, network)
		}
		l.mu.Unlock()
	}
	<-l.slots
}

func (l *limitListener) Close() error {
	l.close.Do(func() { close(l.closed) })
	return l.Listener.Close()
}

// limitedConn gives its slot back when it is closed, which may happen more than
// once.
type limitedConn struct {
	net.Conn
	once    sync.Once
	release func()
}

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.once.Do(c.release)
	return err
}
