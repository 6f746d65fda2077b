package postgres

import (
	"context"
	"errors"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// maxAttempts is how often a call is tried that stored nothing.
const maxAttempts = 3

// read runs do with a connection. It may run it again.
func (s *Store) read(ctx context.Context, doing string, do func(context.Context, *pgxpool.Conn) error) error {
	return s.call(ctx, doing, do, s.readContext)
}

// write runs do, which is one statement, with a connection. It may run it again if
// nothing was stored.
func (s *Store) write(ctx context.Context, doing string, do func(context.Context, *pgxpool.Conn) error) error {
	return s.call(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		return outcome(do(ctx, conn))
	}, s.writeContext)
}

// transact runs do in a transaction. It may run it again if nothing was stored.
//
// A transaction sees what was committed before each of its statements, so that what it
// reads after it has waited for a lock is what the lock protects.
func (s *Store) transact(ctx context.Context, doing string, do func(context.Context, pgx.Tx) error) error {
	return s.call(ctx, doing, func(ctx context.Context, conn *pgxpool.Conn) error {
		tx, err := conn.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.ReadCommitted})
		if err != nil {
			return err
		}
		if err := do(ctx, tx); err != nil {
			return errors.Join(err, ignoreLost(tx.Rollback(ctx)))
		}
		return outcome(tx.Commit(ctx))
	}, s.writeContext)
}

// ignoreLost is for a rollback: what ends with its connection is rolled back.
func ignoreLost(error) error { return nil }

// readContext returns the context of a read that has begun. If that ended with the
// context of a client that hangs up, its connection would be lost.
func (s *Store) readContext(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline := time.Now().Add(s.timeout)
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

func (s *Store) call(ctx context.Context, doing string, do func(context.Context, *pgxpool.Conn) error,
	begun func(context.Context) (context.Context, context.CancelFunc),
) error {
	if err := ctx.Err(); err != nil {
		return s.wrap(doing, err)
	}
	waiting, cancel := context.WithTimeout(ctx, s.timeout)
	defer cancel()
	for attempt := 1; ; attempt++ {
		conn, err := s.pool.Acquire(waiting)
		if err != nil {
			return s.wrap(doing, &connectError{err, s.pool.Stat().AcquiredConns() == s.pool.Config().MaxConns})
		}
		running, cancel := begun(ctx)
		err = do(running, conn)
		cancel()
		conn.Release()
		if err == nil {
			return nil
		}
		if isStale(err) {
			s.reset()
		}
		if attempt == maxAttempts || !canRepeat(err) {
			return s.wrap(doing, err)
		}
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
// if it may have been stored nevertheless.
func outcome(err error) error {
	if err == nil || errors.Is(err, pgx.ErrNoRows) || errors.Is(err, pgx.ErrTxCommitRollback) || pgconn.SafeToRetry(err) {
		return err
	}
	if e, ok := errors.AsType[*pgconn.PgError](err); ok && e.SeverityUnlocalized == "ERROR" {
		return err // the transaction was rolled back
	}
	return &unknownError{err}
}

// canRepeat reports whether a call that has stored nothing can succeed if it is repeated
// at once.
func canRepeat(err error) bool {
	if _, unknown := errors.AsType[*unknownError](err); unknown || pgconn.Timeout(err) {
		return false
	}
	switch state(err) {
	case serializationFailure, deadlockDetected, readOnlyTransaction:
		return true
	}
	return isLost(err)
}
