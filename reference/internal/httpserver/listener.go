package httpserver

import (
	"container/list"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"sync/atomic"
)

// limitListener bounds how many connections are open, in total and for each
// network. When the total is reached it closes the connection that has been idle
// for longest, so that idle connections cannot lock other clients out.
type limitListener struct {
	net.Listener
	plain   bool   // HTTP without TLS: connections look for framing
	evicted *tally // connections closed to make room
	waiting *tally // connections that had to wait because every other one was busy
	refused *tally // connections over the limit of their network

	room   chan struct{} // holds an element if a connection became idle or closed
	closed chan struct{}
	close  sync.Once

	limits atomic.Pointer[limits]

	mu       sync.Mutex
	open     int
	idle     list.List            // idle connections, the one that has been idle for longest in front
	networks map[netip.Prefix]int // open connections of each; no zeros
}

func newLimitListener(l net.Listener, o Options) *limitListener {
	limited := &limitListener{
		Listener: l,
		plain:    o.CertFile == "",
		room:     make(chan struct{}, 1),
		closed:   make(chan struct{}),
		networks: make(map[netip.Prefix]int),
	}
	limited.limits.Store(o.limits())
	total := func() int { return limited.limits.Load().max }
	limited.evicted = newTally(o.Logger, "closed the connections that were idle for longest, to accept new ones", "max_connections", total)
	limited.waiting = newTally(o.Logger, "new connections had to wait, because every open connection has a running request",
		"max_connections", total)
	limited.refused = newTally(o.Logger, "refused connections, because their network has too many", "max_connections_per_network",
		func() int { return limited.limits.Load().perNetwork })
	return limited
}

// Accept accepts a connection first and then makes room for it, so that an idle
// connection is closed only when another one needs its place.
func (l *limitListener) Accept() (net.Conn, error) {
	for {
		raw, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		c, ok := l.admit(raw)
		if !ok {
			l.refused.add() // first, so that the count is right when the client notices
			raw.Close()
			continue
		}
		if !l.makeRoom() {
			c.Close()
			return nil, net.ErrClosed
		}
		l.markIdle(c)
		return c, nil
	}
}

// admit counts c. It returns false if the network of c has reached its limit.
func (l *limitListener) admit(c net.Conn) (*limitedConn, bool) {
	limits := l.limits.Load()
	network := limits.networkOf(c)
	l.mu.Lock()
	defer l.mu.Unlock()
	if network.IsValid() {
		if l.networks[network] >= limits.perNetwork {
			return nil, false
		}
		l.networks[network]++
	}
	l.open++
	return newLimitedConn(c, l, network), true
}

// makeRoom closes idle connections until at most max are open. It waits while no
// connection is idle, and returns false if the listener is closed.
func (l *limitListener) makeRoom() bool {
	for waited := false; ; waited = true {
		c, full := l.longestIdle()
		if !full {
			return true
		}
		if c != nil {
			c.Close()
			l.evicted.add()
			continue
		}
		if !waited {
			l.waiting.add()
		}
		select {
		case <-l.room:
		case <-l.closed:
			return false
		}
	}
}

// longestIdle removes the connection that has been idle for longest from the list, if
// too many are open. It returns nil if no connection is idle.
func (l *limitListener) longestIdle() (c *limitedConn, full bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.open <= l.limits.Load().max {
		return nil, false
	}
	if longest := l.idle.Front(); longest != nil {
		c = longest.Value.(*limitedConn)
		l.unlist(c)
	}
	return c, true
}

// stateChanged is for [http.Server.ConnState]. A new connection counts as idle
// until its first request has been read.
func (l *limitListener) stateChanged(c net.Conn, state http.ConnState) {
	if wrapped, ok := c.(interface{ NetConn() net.Conn }); ok {
		c = wrapped.NetConn() // of a TLS connection
	}
	limited, ok := c.(*limitedConn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive:
		l.mu.Lock()
		l.unlist(limited)
		l.mu.Unlock()
	case http.StateIdle:
		l.markIdle(limited)
	}
}

func (l *limitListener) markIdle(c *limitedConn) {
	l.mu.Lock()
	if !c.released && c.idle == nil {
		c.idle = l.idle.PushBack(c)
	}
	l.mu.Unlock()
	l.signalRoom()
}

// unlist removes a connection from the idle ones, if it is one. The caller holds l.mu.
func (l *limitListener) unlist(c *limitedConn) {
	if c.idle != nil {
		l.idle.Remove(c.idle)
		c.idle = nil
	}
}

func (l *limitListener) release(c *limitedConn) {
	l.mu.Lock()
	if !c.released {
		c.released = true
		l.unlist(c)
		l.open--
		if c.network.IsValid() {
			if l.networks[c.network]--; l.networks[c.network] == 0 {
				delete(l.networks, c.network)
			}
		}
	}
	l.mu.Unlock()
	l.signalRoom()
}

func (l *limitListener) signalRoom() {
	select {
	case l.room <- struct{}{}:
	default: // one signal is enough, because only Accept waits for it
	}
}

func (l *limitListener) Close() error {
	l.close.Do(func() {
		close(l.closed)
		l.evicted.stop()
		l.waiting.stop()
		l.refused.stop()
	})
	return l.Listener.Close()
}
