package postgres

import (
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

const (
	// defaultMaxConns is for a few servers on one database with PostgreSQL's default of
	// 100 connections, also while one is replaced.
	defaultMaxConns = 16

	// defaultConnectTimeout is for each server of the URL.
	defaultConnectTimeout = 2 * time.Second

	// defaultPingTimeout is for the check of a connection that was idle for a second.
	defaultPingTimeout = time.Second
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
	given := parameters(databaseURL)
	if !given.Has("pool_max_conns") {
		c.MaxConns = defaultMaxConns
	}
	if !given.Has("pool_max_conn_lifetime_jitter") {
		c.MaxConnLifetimeJitter = c.MaxConnLifetime / 10
	}
	if !given.Has("pool_ping_timeout") {
		c.PingTimeout = defaultPingTimeout
	}
	if c.ConnConfig.ConnectTimeout == 0 {
		c.ConnConfig.ConnectTimeout = defaultConnectTimeout
	}
	setSession(c.ConnConfig.RuntimeParams)
	c.ConnConfig.OnNotice = noteUnconfirmed
	abandonSoon(c)
	if c.ConnConfig.RuntimeParams["application_name"] == "" {
		c.ConnConfig.RuntimeParams["application_name"] = "petstore"
	}
	// Of several servers only the primary can write.
	if len(hosts(c)) > 1 && c.ConnConfig.ValidateConnect == nil && !given.Has("target_session_attrs") {
		c.ConnConfig.ValidateConnect = pgconn.ValidateConnectTargetSessionAttrsPrimary
	}
	return c, nil
}

// setSession sets what a user, a database or a URL may set for other programs, and what
// PgBouncer sets for each of its clients.
func setSession(params map[string]string) {
	for name, value := range map[string]string{"client_encoding": "UTF8", "datestyle": "ISO"} {
		maps.DeleteFunc(params, func(given, _ string) bool { return strings.EqualFold(given, name) })
		params[name] = value
	}
}

// parameters returns the parameters of a URL that pgx could parse.
func parameters(databaseURL string) url.Values {
	_, query, _ := strings.Cut(databaseURL, "?")
	values, _ := url.ParseQuery(query)
	return values
}

// hosts returns the addresses of the servers in the order of the URL.
func hosts(c *pgxpool.Config) []string {
	all := []string{address(c.ConnConfig.Host, c.ConnConfig.Port)}
	for _, f := range c.ConnConfig.Fallbacks {
		// With and without TLS, the same server is there twice.
		if a := address(f.Host, f.Port); a != all[len(all)-1] {
			all = append(all, a)
		}
	}
	return all
}

func address(host string, port uint16) string {
	return net.JoinHostPort(host, strconv.Itoa(int(port)))
}

// nameOf returns a name of the database for messages, without the password.
func nameOf(c *pgxpool.Config) string {
	return fmt.Sprintf("PostgreSQL database %s at %s", c.ConnConfig.Database, strings.Join(hosts(c), ","))
}

// Options are optional settings of [Open]. The zero value works.
type Options struct {
	// NoMigrate has Open refuse a database without tables, or with an older schema than
	// this program needs. [Migrate] creates and upgrades them.
	NoMigrate bool

	// OnUpgrade is called before a schema of an older version is upgraded. It is not
	// called for a database that has none yet.
	OnUpgrade func(from, to int64)

	// Timeout is how long a call waits for a connection at most, and then for the answer.
	// Zero: five seconds.
	Timeout time.Duration
}

func (o Options) validate() error {
	if o.Timeout < 0 {
		return fmt.Errorf("postgres: Options.Timeout must not be negative, got %v", o.Timeout)
	}
	return nil
}

func (o Options) withDefaults() Options {
	if o.Timeout == 0 {
		o.Timeout = 5 * time.Second
	}
	return o
}
