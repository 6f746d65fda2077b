package httpserver

import (
	"container/list"
	"crypto/tls"
	"net"
	"net/http"
	"net/netip"
	"slices"
	"sync"

	"github.com/animalstore/gatehouse/middleware/clientip"
)

// Stats are the connections of a server. Open and Idle are current numbers; the others only
// grow.
type Stats struct {
	Open    int   // open connections
	Idle    int   // open connections without a running request
	Refused int64 // connections closed immediately because their network has too many
	Evicted int64 // idle connections closed to make room for new ones
	Waited  int64 // connections that waited because every open one had a running request
}

// connections is a listener that bounds how many connections are open, in total and for
// each network. When the total is reached it closes the connection that has been idle for
// longest, so that idle connections cannot lock other clients out. A connection counts as
// idle until its first header section has been read.
type connections struct {
	net.Listener

	mu       sync.Mutex
	room     *sync.Cond // signals that a connection became idle or closed, a limit changed, or the listener closed
	options  Options    // for the limits
	open     map[net.Conn]*connection
	idle     list.List            // of net.Conn; the one that has been idle for longest is in front
	networks map[netip.Prefix]int // open connections of each; no zeros
	closed   bool
	stats    Stats // without Open and Idle
}

type connection struct {
	network netip.Prefix  // zero: not counted for a network
	idle    *list.Element // nil: a request is running
}

func limitConnections(l net.Listener, o Options) *connections {
	c := &connections{Listener: l, options: o, open: make(map[net.Conn]*connection), networks: make(map[netip.Prefix]int)}
	c.room = sync.NewCond(&c.mu)
	return c
}

// Accept accepts a connection first and then makes room for it, so that an idle
// connection is closed only when another one needs its place.
func (c *connections) Accept() (net.Conn, error) {
	for {
		conn, err := c.Listener.Accept()
		if err != nil || c.admit(conn) {
			return conn, err
		}
		conn.Close()
	}
}

// admit counts a connection and makes room for it. It returns false if it must be closed.
func (c *connections) admit(conn net.Conn) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	network := c.options.networkOf(conn)
	if network.IsValid() {
		if c.networks[network] >= c.options.MaxConnsPerNetwork {
			c.stats.Refused++
			c.warn("refused a connection, because its network has too many", "max_connections_per_network", c.options.MaxConnsPerNetwork,
				"network", network.String())
			return false
		}
		c.networks[network]++
	}
	c.open[conn] = &connection{network: network}
	return c.makeRoom(conn)
}

// makeRoom closes idle connections until not too many are open. It waits while none is
// idle, and gives newest up if the listener closes meanwhile. The caller holds c.mu.
func (c *connections) makeRoom(newest net.Conn) bool {
	for waited := false; len(c.open) > c.options.MaxConns; {
		switch longest := c.idle.Front(); {
		case c.closed:
			c.remove(newest)
			return false
		case longest != nil:
			conn := longest.Value.(net.Conn)
			c.remove(conn)
			conn.Close()
			c.stats.Evicted++
			c.warn("closed an idle connection, to accept a new one", "max_connections", c.options.MaxConns)
		default:
			if !waited {
				waited = true
				c.stats.Waited++
				c.warn("a new connection has to wait, because every open one has a running request", "max_connections", c.options.MaxConns)
			}
			c.room.Wait()
		}
	}
	return true
}

// warn logs what a limit has caused. Clients can cause it in any number; the log sums such
// lines.
func (c *connections) warn(message, setting string, limit int, more ...any) {
	c.options.Logger.Warn("http server", append([]any{"message", message, "setting", setting, "limit", limit}, more...)...)
}

// remove forgets a connection, if it is open. The caller holds c.mu.
func (c *connections) remove(conn net.Conn) {
	known, ok := c.open[conn]
	if !ok {
		return
	}
	delete(c.open, conn)
	c.setBusy(known)
	if known.network.IsValid() {
		if c.networks[known.network]--; c.networks[known.network] == 0 {
			delete(c.networks, known.network)
		}
	}
}

// setBusy is called with c.mu held.
func (c *connections) setBusy(known *connection) {
	if known.idle != nil {
		c.idle.Remove(known.idle)
		known.idle = nil
	}
}

// stateChanged is for [http.Server.ConnState].
func (c *connections) stateChanged(conn net.Conn, state http.ConnState) {
	if over, ok := conn.(*tls.Conn); ok {
		conn = over.NetConn()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.open[conn]
	switch {
	case !ok: // closed to make room
	case state == http.StateActive:
		c.setBusy(known)
	case state == http.StateClosed, state == http.StateHijacked:
		c.remove(conn)
		c.room.Signal()
	case known.idle == nil:
		known.idle = c.idle.PushBack(conn)
		c.room.Signal()
	}
}

// setLimits changes the limits. Connections over a lower limit are closed when the next one
// arrives; see makeRoom.
func (c *connections) setLimits(o Options) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.options = o
	c.room.Signal()
}

// Close closes the listener, and gives up a connection that waits for room.
func (c *connections) Close() error {
	c.mu.Lock()
	c.closed = true
	c.room.Signal()
	c.mu.Unlock()
	return c.Listener.Close()
}

// Stats returns the current numbers.
func (c *connections) Stats() Stats {
	c.mu.Lock()
	defer c.mu.Unlock()
	s := c.stats
	s.Open, s.Idle = len(c.open), c.idle.Len()
	return s
}

// networkOf returns the network of a connection, or zero if it is not limited by
// network: clients on this machine and trusted proxies.
func (o Options) networkOf(conn net.Conn) netip.Prefix {
	tcp, ok := conn.RemoteAddr().(*net.TCPAddr)
	if !ok {
		return netip.Prefix{}
	}
	addr := tcp.AddrPort().Addr().Unmap()
	if addr.IsLoopback() || slices.ContainsFunc(o.TrustedProxies, func(p netip.Prefix) bool { return p.Contains(addr) }) {
		return netip.Prefix{}
	}
	return clientip.Network(addr)
}
