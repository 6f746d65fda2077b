// Package postgres stores the data of the service in a PostgreSQL database, which any
// number of servers share.
//
//	s, err := postgres.Open(ctx, "postgres://petstore@db.example/petstore", postgres.Options{})
//	…
//	defer s.Close()
//	pet, err := s.CreatePet(ctx, store.NewPet{Name: "Rex", CategoryID: 1})
//
// # URLs
//
// URLs and their parameters are as in pgx, with these defaults: at most 16 connections
// (pool_max_conns), two seconds to connect to each server (connect_timeout), and, if
// there are several servers, only the primary (target_session_attrs). The parameter
// search_path says in which schema the tables are.
//
// PgBouncer in transaction mode needs default_query_exec_mode=exec, because it gives the
// statements of a session to several connections. It refuses search_path, which must be a
// setting of the user then (ALTER ROLE).
//
// # Durability
//
// A write is acknowledged when PostgreSQL has committed it, so fsync must be on and
// synchronous_commit must not be off. Both are so by default. Commits at the same time
// share a sync of the disk; each needs a connection for that.
//
// After a failover, a synchronous standby has all acknowledged writes, including those that
// were acknowledged when a call was repeated after an unknown outcome. An asynchronous one may
// lack the last of them, and may then give the IDs of lost pets to others.
//
// # Calls
//
// A call waits for a connection until its context ends, and for at most Options.Timeout.
// Once it has one, it finishes within Options.Timeout, so that the outcome of a write is
// known and a client that hangs up does not cost a connection. Only a read also ends at the
// deadline of its context.
//
// If the answer to a commit does not arrive, the write may be stored or not. If the wait for a
// synchronous standby was canceled, a failover can lose the write. The error then wraps
// [ErrUnknown]. All other errors of a write mean that it has stored nothing.
//
// A call that has stored nothing is repeated if its connection is lost, or if it can succeed
// immediately, such as after a deadlock. When a connection is lost, hangs, finds its server
// read-only or its statements outdated, all connections are replaced, at most once a second.
// So a Store recovers from a restart or a failover by itself. Temporary errors wrap
// [store.ErrUnavailable]. No error has the password.
//
// Requests with one idempotency key wait for each other, with an advisory lock. CreateFirstKey
// locks the table of keys against other writes. Entries of the audit log wait for each other at the
// end of their transactions, so that their IDs are in the order of the commits. [Store.Import]
// locks all tables against writes.
//
// # Upgrades
//
// [Open] creates the tables in an empty schema and upgrades the tables of an older version, and
// [Migrate] does so where the servers may not. Each step is a transaction, and an advisory
// lock keeps servers that start together apart. Tables of another program are refused and
// not changed.
//
// Several versions of the program can use one database. A new version only adds to the
// tables, with defaults, and a later one removes what is no longer used. The table
// petstore_schema has the oldest version of the schema whose programs still work. An older
// program refuses to start, and its Ping fails, only if it is older than that.
package postgres

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/animalstore/gatehouse/reference/internal/store"
)

// Options are optional settings of [Open]. The zero value works.
type Options struct {
	// NoMigrate has Open refuse a database without tables, or with an older schema than
	// this program needs. [Migrate] creates and upgrades them.
	NoMigrate bool

	// OnUpgrade is called before a schema of an older version is upgraded. It is not
	// called for a database that has none yet.
	OnUpgrade func(from, to int64)

	// Timeout is how long a call waits for a connection at most, and then for the answer.
	// It is not negative. Zero: five seconds.
	Timeout time.Duration
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	return o
}

// A Store is a PostgreSQL database of pets, keys, the audit log and counted use. [Open]
// returns one. It is safe for concurrent use.
type Store struct {
	store.Tables
	name    string // for messages
	pool    *pgxpool.Pool
	views   *sql.DB // of connections of the pool, for package database/sql
	timeout time.Duration
	latest  int64 // version of the schema that this program knows

	resetting sync.Mutex
	lastReset time.Time
}

var _ store.Store = (*Store)(nil)

// Open opens the database with a URL as pgx has them: postgres:// or postgresql://. It
// creates the tables in an empty database, and upgrades the tables of an older version, unless
// o.NoMigrate is set.
//
// If the database cannot be reached now, the error wraps [store.ErrUnavailable]. No error
// has the password.
func Open(ctx context.Context, url string, o Options) (*Store, error) {
	return open(ctx, url, o.withDefaults(), ownMigrations)
}

func open(ctx context.Context, url string, o Options, files fs.FS) (*Store, error) {
	config, err := parse(url)
	if err != nil {
		return nil, err
	}
	_, latest, err := prepare(ctx, config, o, files)
	if err != nil {
		return nil, err
	}
	pool, err := pgxpool.NewWithConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("open %s: %w", nameOf(config), err)
	}
	s := &Store{name: nameOf(config), pool: pool, views: sql.OpenDB(connector{}), timeout: o.Timeout, latest: latest}
	s.views.SetMaxIdleConns(-1) // each query has another one
	s.Tables = store.NewTables(store.PostgreSQL, s.readTables, s.transact, s.statement)
	return s, nil
}

// Close waits for running calls and closes the connections. Later calls fail with
// [store.ErrUnavailable]. A second Close does nothing.
func (s *Store) Close() error {
	s.pool.Close()
	return s.views.Close()
}

// The rights are those that the statements of this package need.
const pingText = `SELECT current_setting('transaction_read_only') = 'on', oldest,
	(SELECT bool_and(has_table_privilege(name, privilege)) FROM (VALUES
		('pets', '{SELECT,INSERT,UPDATE}'), ('idempotency_keys', '{SELECT,INSERT,UPDATE,DELETE}'),
		('keys', '{SELECT,INSERT,UPDATE}'), ('audit', '{SELECT,INSERT}'),
		('daily_use', '{SELECT,INSERT,UPDATE,DELETE}'), ('deprecated_use', '{SELECT,INSERT,UPDATE}'),
		('deprecated_use_by_day', '{SELECT,INSERT,UPDATE,DELETE}')
	) AS t (name, privileges), unnest(privileges::text[]) AS privilege)
	FROM petstore_schema`

// Ping returns an error if the database cannot be read, or cannot be written because it is a
// standby or the user lacks rights on a table, or if this program is too old for its tables.
func (s *Store) Ping(ctx context.Context) error {
	return s.read(ctx, "check the database", func(ctx context.Context, conn *pgxpool.Conn) error {
		var readOnly, allowed bool
		var oldest int64
		if err := conn.QueryRow(ctx, pingText).Scan(&readOnly, &oldest, &allowed); err != nil {
			return err
		}
		switch {
		case readOnly:
			return errReadOnly
		case oldest > s.latest:
			return errTooOld
		case !allowed:
			return errNoRights
		}
		return nil
	})
}

// Stats say how the connections of a store are used.
type Stats struct {
	Used, Max int64 // connections
	Waits     int64 // calls that waited for a connection and got one
}

// Stats returns how the connections are used now, and have been since Open.
func (s *Store) Stats() Stats {
	p := s.pool.Stat()
	return Stats{Used: int64(p.AcquiredConns()), Max: int64(p.MaxConns()), Waits: p.EmptyAcquireCount()}
}

const (
	// defaultMaxConns is for a few servers on one database with PostgreSQL's default of
	// 100 connections, also while one is replaced.
	defaultMaxConns = 16

	// defaultConnectTimeout is for each server of the URL.
	defaultConnectTimeout = 2 * time.Second
)

// Check returns an error if a URL, with the variables and files of PostgreSQL in the
// environment, does not say how to connect: if a parameter is malformed, or a file with a
// certificate cannot be read. It does not connect. The error does not have the password.
func Check(databaseURL string) error {
	_, err := parse(databaseURL)
	return err
}

// parse reads a URL and sets the defaults of this package. Its errors do not have the
// password.
func parse(databaseURL string) (*pgxpool.Config, error) {
	if !strings.HasPrefix(databaseURL, "postgres://") && !strings.HasPrefix(databaseURL, "postgresql://") {
		return nil, errors.New("the URL of a PostgreSQL database must begin with postgres:// or postgresql://")
	}
	c, err := pgxpool.ParseConfig(databaseURL)
	if err != nil {
		return nil, fmt.Errorf("the URL of the PostgreSQL database: %w", err)
	}
	_, query, _ := strings.Cut(databaseURL, "?")
	given, _ := url.ParseQuery(query) // pgx has parsed it without an error
	conn := c.ConnConfig
	if !given.Has("pool_max_conns") {
		c.MaxConns = defaultMaxConns
	}
	if conn.ConnectTimeout == 0 {
		conn.ConnectTimeout = defaultConnectTimeout
	}
	// Of several servers only the primary can write.
	if len(hosts(c)) > 1 && conn.ValidateConnect == nil && !given.Has("target_session_attrs") {
		conn.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	conn.OnNotice = noteUnconfirmed
	if conn.RuntimeParams["application_name"] == "" {
		conn.RuntimeParams["application_name"] = "petstore"
	}
	// The user or the database may have other values for other programs. PgBouncer sets these, too.
	conn.RuntimeParams["client_encoding"], conn.RuntimeParams["datestyle"] = "UTF8", "ISO"
	return c, nil
}

// hosts returns the addresses of the servers in the order of the URL.
func hosts(c *pgxpool.Config) []string {
	address := func(host string, port uint16) string { return net.JoinHostPort(host, strconv.Itoa(int(port))) }
	all := []string{address(c.ConnConfig.Host, c.ConnConfig.Port)}
	for _, f := range c.ConnConfig.Fallbacks {
		all = append(all, address(f.Host, f.Port))
	}
	return slices.Compact(all) // pgx lists a server twice: with and without TLS
}

// nameOf returns a name of the database for messages, without the password.
func nameOf(c *pgxpool.Config) string {
	return fmt.Sprintf("PostgreSQL database %s at %s", c.ConnConfig.Database, strings.Join(hosts(c), ","))
}
