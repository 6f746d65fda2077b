package server

import (
	"errors"
	"net"
	"net/netip"
	"time"
)

// A limitedConn is a connection of a limitListener. It ends calls at its deadlines, looks at
// the framing of requests, and releases its place when it is closed, which may happen more
// than once.
type limitedConn struct {
	net.Conn
	listener *limitListener
	network  netip.Prefix // zero: not counted for a network

	read, write deadline

	framing framing // of the bytes read; used only without TLS

	idle     idleLinks // not listed: a request is running; guarded by listener.mu
	released bool      // guarded by listener.mu
}

func newLimitedConn(c net.Conn, l *limitListener, network netip.Prefix) *limitedConn {
	limited := &limitedConn{Conn: c, listener: l, network: network}
	now := time.Now()
	limited.read.init(now, c.SetReadDeadline)
	limited.write.init(now, c.SetWriteDeadline)
	return limited
}

func (c *limitedConn) Read(p []byte) (int, error) {
	n, err := c.read.do(p, c.Conn.Read)
	if c.listener.plain {
		c.framing.scan(p[:n])
	}
	return n, err
}

func (c *limitedConn) Write(p []byte) (int, error) { return c.write.do(p, c.Conn.Write) }

// SetDeadline implements [net.Conn].
func (c *limitedConn) SetDeadline(t time.Time) error {
	return errors.Join(c.SetReadDeadline(t), c.SetWriteDeadline(t))
}

// SetReadDeadline implements [net.Conn].
func (c *limitedConn) SetReadDeadline(t time.Time) error { return c.read.set(t) }

// SetWriteDeadline implements [net.Conn].
func (c *limitedConn) SetWriteDeadline(t time.Time) error { return c.write.set(t) }

func (c *limitedConn) Close() error {
	err := c.Conn.Close()
	c.listener.release(c)
	return err
}
