//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"strconv"

	"github.com/jackc/pgx/v5"
)

// StartStandby starts a standby that follows the server and can be read. It stops when
// the test ends.
func (s *Server) StartStandby(settings ...string) *Server {
	s.t.Helper()
	data := filepath.Join(filepath.Dir(s.data), "data"+strconv.FormatInt(count.Add(1), 10))
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := command("pg_basebackup", "--pgdata", data, "--host", host, "--port", port, "--username", userName,
		"--checkpoint", "fast", "--write-recovery-conf", "--no-sync").CombinedOutput()
	if err != nil {
		s.t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	standby, err := start(s.t, data, append(s.settings[:len(s.settings):len(s.settings)], settings...))
	if err != nil {
		s.t.Fatal(err)
	}
	return standby
}

// Synchronous has commits on the server wait for a standby. It returns once one follows.
func (s *Server) Synchronous() {
	s.t.Helper()
	s.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	if err := eventually(s.checkSynchronous); err != nil {
		s.t.Fatal(err)
	}
}

func (s *Server) checkSynchronous() error {
	var follows bool
	err := s.query("SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')", &follows)
	if err == nil && !follows {
		err = errors.New(s.Addr + " has no synchronous standby")
	}
	return err
}

// Promote makes a standby a primary, and returns once it is one. Its commits wait for no
// other standby.
func (s *Server) Promote() {
	s.t.Helper()
	var ok bool
	if err := s.query("SELECT pg_promote(true, "+strconv.Itoa(int(startTimeout.Seconds()))+")", &ok); err != nil || !ok {
		s.t.Fatalf("pg_promote of %s = %v, %v", s.Addr, ok, err)
	}
	s.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
}

func (s *Server) query(text string, into any) error {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	return conn.QueryRow(ctx, text).Scan(into)
}
