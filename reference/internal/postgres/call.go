package postgres

import (
	"context"
	"errors"
	"fmt"
	"net"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// maxAttempts is how often a call is tried that stored nothing, but see call.
	maxAttempts = 3

	// retryPause is between attempts to get a connection from a server that has too many.
	retryPause = 100 * time.Millisecond
)

// read runs do with a connection. It may run it again.
func (s *Store) read(ctx context.Context, doing string, do func(context.Context, *pgxpool.Conn) error) error {
	return s.call(ctx, doing, do, func(ctx context.Context) (context.Context, context.CancelFunc) {
		return untilDeadline(ctx, s.timeout)
	})
}

// write runs do, which is one statement, with a connection. It may run it again if
// nothing was stored.
func (s *Store) write(ctx context.Context, doing string, do func(context.Context, *pgxpool.Conn) error) error {
	return s.call(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		return confirmed(conn.Conn(), outcome(do(ctx, conn)))
	}, s.writeContext)
}

// transact runs do in a transaction. It may run it again if nothing was stored.
//
// Each statement sees what was committed before it, so that what is read after waiting
// for a lock is what the lock protects.
func (s *Store) transact(ctx context.Context, doing string, do func(context.Context, pgx.Tx) error) error {
	return s.call(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		if err := do(ctx, tx); err != nil {
			_ = tx.Rollback(ctx) // or its connection is lost, which does the same
			return err
		}
		return confirmed(conn.Conn(), outcome(tx.Commit(ctx)))
	}, s.writeContext)
}

// untilDeadline returns the context of a read that has begun. It ends with the deadline of
// ctx, but not when ctx is canceled: a client that hangs up would cost a connection.
func untilDeadline(ctx context.Context, timeout time.Duration) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(timeout)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	return context.WithDeadline(context.WithoutCancel(ctx), deadline)
}

// writeContext returns the context of a write that has begun, which finishes so that its
// outcome is known.
func (s *Store) writeContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
}

// call runs do with a connection and the context that begun returns.
func (s *Store) call(ctx context.Context, doing string, do func(context.Context, *pgxpool.Conn) error,
	begun func(context.Context) (context.Context, context.CancelFunc),
) error {
	if err := ctx.Err(); err != nil {
		return s.wrap(doing, err)
	}
	for attempt := 1; ; attempt++ {
		conn, err := s.acquire(ctx)
		if err != nil {
			return s.wrap(doing, err)
		}
		running, cancel := begun(ctx)
		err = do(running, conn)
		if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.Code == "" { // PostgreSQL sends none without a code
			_ = conn.Conn().Close(running)
		}
		if err != nil && conn.Conn().IsClosed() && !isOwn(err) && !isLost(err) {
			err = fmt.Errorf("%w: %w", pgconn.ErrConnClosed, err) // the answer is not one of PostgreSQL
		}
		hangs := running.Err() != nil && ctx.Err() == nil
		cancel()
		conn.Release()
		if err == nil {
			return nil
		}
		if hangs || isStale(err) {
			s.reset()
		}
		limit := maxAttempts
		if state(err) == idleSessionTimeout { // as may be that of all connections of the pool
			limit += int(s.pool.Stat().MaxConns())
		}
		if attempt >= limit || !canRepeat(err) {
			return s.wrap(doing, err)
		}
	}
}

// acquire waits for a connection, within the timeout.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for {
		conn, err := s.pool.Acquire(waiting)
		if err == nil {
			return conn, nil
		}
		stat := s.pool.Stat()
		if waiting.Err() != nil && ctx.Err() == nil {
			s.reset() // idle connections may hang
		}
		// If the server refuses another connection, those that there are will do.
		if state(err) == tooManyConnections && stat.AcquiredConns()+stat.IdleConns() > 0 {
			select {
			case <-time.After(retryPause):
				continue
			case <-waiting.Done():
			}
		}
		return nil, &connectError{err, stat.AcquiredConns() == stat.MaxConns()}
	}
}

// reset replaces all connections. When one fails or finds its server read-only, the
// others would too, each in a call of its own.
func (s *Store) reset() {
	s.resetting.Lock()
	defer s.resetting.Unlock()
	if now := time.Now(); now.Sub(s.lastReset) > time.Second {
		s.lastReset = now
		s.pool.Reset()
	}
}

// outcome returns the error of a statement that writes or commits, as an unknownError
// if it may have been stored nevertheless. It does not ask [pgconn.SafeToRetry], which can
// be true after a COMMIT that was sent, if its connection was lost.
func outcome(err error) error {
	if err == nil || errors.Is(err, pgx.ErrTxCommitRollback) {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && (e.SeverityUnlocalized == "ERROR" || e.Code == idleSessionTimeout) {
		return err // the transaction was rolled back, or the session had ended before it
	}
	return &unknownError{err}
}

// canRepeat reports whether a call that has stored nothing can succeed if it is repeated
// at once.
func canRepeat(err error) bool {
	if IsUnknown(err) || pgconn.Timeout(err) {
		return false
	}
	switch state(err) {
	case serializationFailure, deadlockDetected, readOnlyTransaction:
		return true
	}
	return isLost(err) || errors.Is(err, errReadOnly)
}

// longTimeout is for the answer to a question about everything.
const longTimeout = time.Minute

// longContext returns the context of such a question that has begun.
func (s *Store) longContext(ctx context.Context) (context.Context, context.CancelFunc) {
	return untilDeadline(ctx, max(longTimeout, s.timeout))
}

// readAll returns what scan reads of each row. No rows are an empty slice.
func readAll[T any](ctx context.Context, s *Store, doing string, scan pgx.RowToFunc[T], text string, args ...any) (all []T, err error) {
	err = s.call(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		rows, err := conn.Query(ctx, text, args...)
		if err != nil {
			return err
		}
		all, err = pgx.AppendRows([]T{}, rows, scan)
		return err
	}, s.longContext)
	if err != nil {
		return nil, err
	}
	return all, nil
}

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
