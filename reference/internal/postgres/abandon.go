package postgres

import (
	"context"
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
