package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/middleware/apikey/sqlkeys"
)

// maxAttempts is how often a call that stores nothing is tried.
const maxAttempts = 3

// read runs do with a connection. It may run it again. A read that has begun ends at the
// deadline of ctx.
func (s *Store) read(ctx context.Context, doing string, do func(context.Context, *pgxpool.Conn) error) error {
	return s.call(ctx, doing, func(running context.Context, conn *pgxpool.Conn) error {
		if deadline, ok := ctx.Deadline(); ok {
			var cancel context.CancelFunc
			running, cancel = context.WithDeadline(running, deadline)
			defer cancel()
		}
		return do(running, conn)
	})
}

// readTables is a [store.Call].
func (s *Store) readTables(ctx context.Context, doing string, do func(context.Context, sqlkeys.DB) error) error {
	return s.read(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error { return do(ctx, s.view(conn)) })
}

// statement is a [store.Call] for one statement that writes, which is a transaction by itself.
func (s *Store) statement(ctx context.Context, doing string, do func(context.Context, sqlkeys.DB) error) error {
	return s.call(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		return stored(conn.Conn(), do(ctx, s.view(conn)))
	})
}

// transact is a [store.Call] that writes in a transaction.
//
// Each statement sees what was committed before it, so that what is read after waiting
// for a lock is what the lock protects.
func (s *Store) transact(ctx context.Context, doing string, do func(context.Context, sqlkeys.DB) error) error {
	return s.call(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		if err := do(ctx, s.view(tx)); err != nil {
			_ = tx.Rollback(ctx) // or its connection is lost, which does the same
			return err
		}
		return stored(conn.Conn(), tx.Commit(ctx))
	})
}

// call runs do with a connection, and again if that can succeed immediately.
func (s *Store) call(ctx context.Context, doing string, do func(context.Context, *pgxpool.Conn) error) error {
	for attempt := 1; ; attempt++ {
		again, err := s.try(ctx, do)
		if err == nil {
			return nil
		}
		if !again || attempt == maxAttempts {
			return s.explain(doing, err)
		}
	}
}

// try runs do once, and reports whether the call has stored nothing and can succeed if it is
// repeated immediately. What has begun goes on when ctx ends: the outcome of a write is known
// then, and a client that hangs up does not cost a connection.
func (s *Store) try(ctx context.Context, do func(context.Context, *pgxpool.Conn) error) (again bool, err error) {
	conn, err := s.acquire(ctx)
	if err != nil {
		return false, err
	}
	running, cancel := context.WithTimeout(context.WithoutCancel(ctx), s.timeout)
	defer cancel()
	err = do(running, conn)
	if err == nil || !conn.Conn().IsClosed() {
		conn.Release()
		if isStale(err) {
			s.reset()
		}
		return canRepeat(err), err
	}
	// Pgx takes up to 15 seconds to close a connection that has failed. Until then the pool
	// would count it as one of its own.
	conn.Hijack()
	if ctx.Err() == nil {
		s.reset()
	}
	again = running.Err() == nil && ctx.Err() == nil && !errors.Is(err, ErrUnknown)
	return again, fmt.Errorf("%w: %w", errLost, err)
}

// acquire waits for a connection, within the timeout.
func (s *Store) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	waiting, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	conn, err := s.pool.Acquire(waiting)
	stat := s.pool.Stat()
	switch {
	case err == nil:
		return conn, nil
	case errors.Is(ctx.Err(), context.Canceled):
		return nil, ctx.Err()
	case waiting.Err() != nil && stat.AcquiredConns() == stat.MaxConns():
		return nil, fmt.Errorf("%w: all %d connections are in use; raise pool_max_conns: %w", errNoConnection, stat.MaxConns(), err)
	case waiting.Err() != nil && ctx.Err() == nil:
		s.reset() // idle connections may hang
	}
	return nil, fmt.Errorf("%w: %w", errNoConnection, err)
}

// reset replaces all connections. When one fails or is stale, the others would fail too,
// each in a call of its own.
func (s *Store) reset() {
	s.resetting.Lock()
	defer s.resetting.Unlock()
	if now := time.Now(); now.Sub(s.lastReset) > time.Second {
		s.lastReset = now
		s.pool.Reset()
	}
}

// unconfirmed is the key of the custom data of a connection whose server has committed, and
// has warned that no synchronous standby confirmed it, because something canceled the wait
// (pg_cancel_backend).
const unconfirmed = "petstore.unconfirmed"

// noteUnconfirmed notes the warning. Its text is translated, and its code is the same for all
// warnings, so noteUnconfirmed recognizes it by the function of the server that sends it.
func noteUnconfirmed(conn *pgconn.PgConn, n *pgconn.Notice) {
	if n.Routine == "SyncRepWaitForLSN" {
		conn.CustomData()[unconfirmed] = true
	}
}

// stored returns the error of a statement that writes or commits. It wraps [ErrUnknown] unless
// the server has said that it has stored everything, or nothing. It does not ask
// [pgconn.SafeToRetry], which can be true after a COMMIT that was sent, if its connection was
// lost.
func stored(conn *pgx.Conn, err error) error {
	data := conn.PgConn().CustomData()
	warned := data[unconfirmed] != nil
	delete(data, unconfirmed)
	answer, _ := errors.AsType[*pgconn.PgError](err)
	switch {
	case err == nil && warned:
		return fmt.Errorf("%w: the wait of the commit for the synchronous standby was canceled", ErrUnknown)
	case err == nil, errors.Is(err, pgx.ErrTxCommitRollback), answer != nil && answer.SeverityUnlocalized == "ERROR":
		return err
	}
	return fmt.Errorf("%w: %w", ErrUnknown, err)
}
