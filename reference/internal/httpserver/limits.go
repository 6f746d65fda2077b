package httpserver

import (
	"container/list"
	"errors"
	"log/slog"
	"net"
	"net/netip"
	"slices"
	"sync"
	"sync/atomic"
	"time"

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

// A limitedConn is a connection of a limitListener. It ends calls at its deadlines, looks at
// the framing of requests, and releases its place when it is closed, which may happen more
// than once.
type limitedConn struct {
	net.Conn
	listener *limitListener
	network  netip.Prefix // zero: not counted for a network

	read, write deadline

	framing framing // of the bytes read; used only without TLS

	idle     *list.Element // in listener.idle; nil: a request is running; guarded by listener.mu
	released bool          // guarded by listener.mu
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

// tallyPeriod is the shortest time between two log lines of one tally.
const tallyPeriod = time.Minute

// A tally counts events that clients can cause in any number, and logs their count:
// the first event at once, further ones at most once in each tallyPeriod. It has a
// timer only while there are events.
type tally struct {
	log   func(n int)
	total atomic.Int64 // events since the start

	mu    sync.Mutex
	n     int         // events that are not logged yet
	timer *time.Timer // nil: the next event is logged at once
}

// newTally returns a tally. Its lines name the setting that causes the events and the
// limit in force.
func newTally(logger *slog.Logger, message, setting string, limit func() int) *tally {
	return &tally{log: func(n int) {
		logger.Warn(message, slog.Int("connections", n), slog.String("setting", setting), slog.Int("limit", limit()))
	}}
}

func (t *tally) add() {
	t.total.Add(1)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.n++
	if t.timer == nil {
		t.report()
	}
}

// report logs the count and starts the next period. The caller holds t.mu.
func (t *tally) report() {
	if t.n == 0 {
		t.timer = nil
		return
	}
	t.log(t.n)
	t.n = 0
	t.timer = time.AfterFunc(tallyPeriod, func() {
		t.mu.Lock()
		defer t.mu.Unlock()
		if t.timer != nil { // otherwise stop came first
			t.report()
		}
	})
}

// stop logs the count and stops the timer.
func (t *tally) stop() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.timer != nil {
		t.timer.Stop()
	}
	if t.n > 0 {
		t.log(t.n)
		t.n = 0
	}
	t.timer = nil
}
