package postgres

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// abandonSoon limits how long a connection that has failed takes to close. Until then it
// counts as one of the pool. Pgx asks the server to cancel the statement and waits for the
// rest of its answer, up to 15 seconds, which a server that hangs would use up.
func abandonSoon(c *pgxpool.Config) {
	limit := c.ConnConfig.ConnectTimeout
	c.BeforeConnect = func(_ context.Context, config *pgx.ConnConfig) error {
		d := &dialer{dial: config.DialFunc, limit: limit}
		config.DialFunc, config.AfterConnect = d.connect, d.connected
		return nil
	}
	c.BeforeClose = func(conn *pgx.Conn) {
		if conn.IsClosed() {
			time.AfterFunc(limit, func() { _ = conn.PgConn().Conn().Close() })
		}
	}
}

// A dialer makes one connection, and later those that cancel its statements.
type dialer struct {
	dial        pgconn.DialFunc
	limit       time.Duration
	established atomic.Bool
}

func (d *dialer) connected(context.Context, *pgconn.PgConn) error {
	d.established.Store(true)
	return nil
}

func (d *dialer) connect(ctx context.Context, network, addr string) (net.Conn, error) {
	if !d.established.Load() {
		return d.dial(ctx, network, addr)
	}
	ctx, cancel := context.WithTimeout(ctx, d.limit)
	defer cancel()
	conn, err := d.dial(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return conn, conn.SetDeadline(time.Now().Add(d.limit))
}

// errUnconfirmed: the server has committed, and no synchronous standby has confirmed it,
// because something canceled the wait (pg_cancel_backend). A failover can lose the write.
var errUnconfirmed = errors.New("the commit was canceled while it waited for the synchronous standby")

// unconfirmed is the key of the custom data of a connection whose server has warned so.
const unconfirmed = "petstore.unconfirmed"

// noteUnconfirmed notes the warning. The text of it is translated, and its code is that of
// any warning, so it is known by the function of the server that gives it.
func noteUnconfirmed(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		conn.CustomData()[unconfirmed] = true
	}
}

// confirmed returns err, or errUnconfirmed if a write without an error was not confirmed.
func confirmed(conn *pgx.Conn, err error) error {
	data := conn.PgConn().CustomData()
	warned := data[unconfirmed] != nil
	delete(data, unconfirmed)
	if err == nil && warned {
		return &unknownError{errUnconfirmed}
	}
	return err
}
