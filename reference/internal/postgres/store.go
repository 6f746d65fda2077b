package postgres

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5/pgtype"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// A Store is a PostgreSQL database of pets, keys, the audit log and counted use. [Open]
// returns one. It is safe for concurrent use.
type Store struct {
	name    string // for messages
	pool    *pgxpool.Pool
	timeout time.Duration
	latest  int64 // version of the schema that this program knows
	closed  atomic.Bool

	resetting sync.Mutex
	lastReset time.Time
}

var _ store.Store = (*Store)(nil)

// Open opens the database with a URL as pgx has them: postgres:// or postgresql://. It
// creates the tables in an empty database, and upgrades those of an older version, unless
// o.NoMigrate is set.
//
// If the database cannot be reached now, the error wraps [store.ErrUnavailable]. No error
// has the password.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	if err := o.validate(); err != nil {
		return nil, err
	}
	return open(ctx, url, o.withDefaults(), ownMigrations())
}

func open(ctx context.Context, url string, o Options, m migrations) (*Store, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	latest, err := m.prepare(ctx, config, o)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", nameOf(config), err)
	}
	return &Store{name: nameOf(config), pool: pool, timeout: o.Timeout, latest: latest}, nil
}

// Close waits for running calls and closes the connections. Later calls fail with
// [store.ErrUnavailable]. A second Close does nothing.
func (s *Store) Close() error {
	if !s.closed.Swap(true) {
		s.pool.Close()
	}
	return nil
}

const pingText = `SELECT current_setting('transaction_read_only') = 'on', oldest FROM petstore_schema`

// Ping returns an error if the database cannot be read, cannot be written, such as a
// standby, or has tables that this program is too old for.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "check the database", func(ctx context.Context, conn *pgxpool.Conn) error {
		var readOnly bool
		var oldest int64
		if err := conn.QueryRow(ctx, pingText).Scan(&readOnly, &oldest); err != nil {
			return err
		}
		switch {
		case readOnly:
			return errReadOnly
		case oldest > s.latest:
			return errTooOld
		}
		return nil
	})
}

// Stats say how the connections of a store are used.
type Stats struct {
	Used, Idle, Max int64         // connections
	Waits           int64         // calls that waited for a connection and got one
	WaitTimeouts    int64         // calls that got no connection, since their time was over
	Waited          time.Duration // how long the calls in Waits waited together
}

// Stats returns how the connections are used now, and have been since Open.
func (s *Store) Stats() Stats {
	p := s.pool.Stat()
	return Stats{
		Used: int64(p.AcquiredConns()), Idle: int64(p.IdleConns()), Max: int64(p.MaxConns()),
		Waits: p.EmptyAcquireCount(), WaitTimeouts: p.CanceledAcquireCount(), Waited: p.EmptyAcquireWaitTime(),
	}
}

// toMicroseconds returns a time with the precision that timestamptz has, in UTC.
func toMicroseconds(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// orNull returns nil, which is stored as NULL, for the zero time.
func orNull(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// orZero is the inverse of orNull.
func orZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// dayOf returns the UTC day that t is in.
func dayOf(t time.Time) pgtype.Date { return pgtype.Date{Time: store.Day(t), Valid: true} }
