//go:build unix

package postgrestest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// startTimeout is how long a server may take to start or to follow another.
const startTimeout = 2 * time.Minute

// A Server is one PostgreSQL server. Its methods fail the test that started it.
type Server struct {
	Addr string // host:port

	t        testing.TB // nil: shared
	data     string
	settings []string
	cmd      *exec.Cmd
	ended    chan struct{} // closed when cmd has ended
	frozen   []int         // processes
}

// Start starts a server with settings such as "max_connections=10", and waits until it
// answers. It stops when the test ends.
//
// Commits wait for the log to be written, but not for the disk, which a killed server
// does not need, unless the settings have "fsync=on".
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	require(t)
	s, err := startNew(t, settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func startNew(t testing.TB, settings []string) (*Server, error) {
	data, err := newPath("data")
	if err != nil {
		return nil, err
	}
	if err := initialize(data); err != nil {
		return nil, err
	}
	return start(t, data, settings)
}

// start starts a server on a free port. Without a test it runs until this process ends.
func start(t testing.TB, data string, settings []string) (s *Server, err error) {
	for range 5 { // another process may take the port meanwhile
		s = &Server{t: t, data: data, settings: settings}
		if s.Addr, err = freeAddr(); err != nil {
			return nil, err
		}
		if err = s.start(); err == nil {
			break
		}
	}
	if err == nil && t != nil {
		t.Cleanup(s.remove)
	}
	return s, err
}

func (s *Server) start() error {
	host, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		return err
	}
	args := []string{"-D", s.data, "-p", port, "-h", host, "-k", ""}
	for _, setting := range append([]string{"fsync=off", "shared_buffers=16MB", "log_min_messages=warning"}, s.settings...) {
		args = append(args, "-c", setting)
	}
	// Not a pipe, which would stay open until the last process of the server has ended.
	log, err := os.Create(s.data + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, ended := command("postgres", args...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	if err := cmd.Start(); err != nil {
		return err
	}
	go func() {
		defer close(ended)
		_ = cmd.Wait()
	}()
	s.cmd, s.ended = cmd, ended
	if err := eventually(s.check); err != nil {
		s.end(syscall.SIGQUIT)
		text, _ := os.ReadFile(s.data + ".log")
		return fmt.Errorf("%s: %s", err.Error(), text) // not errEnded: what a killed server held may be free soon
	}
	return nil
}

// check returns an error unless this server answers.
func (s *Server) check() error {
	_, err := query[int](s, "SELECT 1")
	if !s.runs() { // such as because another server has its port
		return errEnded
	}
	return err
}

// errEnded: the server has ended and will not answer.
var errEnded = errors.New("the server has ended")

// runs reports whether the process runs.
func (s *Server) runs() bool {
	select {
	case <-s.ended:
		return false
	default:
		return true
	}
}

// URL returns the URL of a database on the server, as its superuser.
func (s *Server) URL(database string) string { return s.UserURL(userName, Password, database) }

// UserURL returns the URL of a database for a user.
func (s *Server) UserURL(user, password, database string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: s.Addr,
		Path: "/" + database, RawQuery: "sslmode=disable",
	}).String()
}

// Exec runs statements in a database.
func (s *Server) Exec(database string, statements ...string) {
	s.t.Helper()
	Exec(s.t, s.URL(database), statements...)
}

// Kill kills all processes of the server with SIGKILL, like a crash.
func (s *Server) Kill() {
	s.t.Helper()
	if s.runs() {
		s.signalAll(syscall.SIGKILL)
		<-s.ended
	}
}

// Stop stops the server as an operator does for a restart: it ends all connections
// (pg_ctl stop -m fast).
func (s *Server) Stop() { s.end(syscall.SIGINT) }

// end sends a signal that ends the server, and returns when it has ended.
func (s *Server) end(sig syscall.Signal) {
	if s.runs() {
		_ = s.cmd.Process.Signal(sig)
		<-s.ended
	}
}

// Restart kills the server, if it runs, and starts it on the same port and data.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := eventually(s.start); err != nil {
		s.t.Fatal(err)
	}
}

// Freeze stops the server with SIGSTOP: until Thaw its connections stay open and it
// answers nothing.
func (s *Server) Freeze() {
	s.t.Helper()
	s.frozen = s.signalAll(syscall.SIGSTOP)
}

// Thaw continues a frozen server.
func (s *Server) Thaw() {
	for _, pid := range s.frozen {
		_ = syscall.Kill(pid, syscall.SIGCONT)
	}
	s.frozen = nil
}

// signalAll sends a signal to all processes of the server, and returns them.
func (s *Server) signalAll(sig syscall.Signal) []int {
	s.t.Helper()
	if len(s.frozen) > 0 {
		s.Thaw()
	}
	conn, err := pgx.Connect(context.Background(), s.URL("postgres"))
	if err != nil {
		s.t.Fatal(err)
	}
	parent := s.cmd.Process.Pid
	_ = syscall.Kill(parent, syscall.SIGSTOP) // then it starts no further ones
	var pids []int
	if err := conn.QueryRow(context.Background(), "SELECT array_agg(pid) FROM pg_stat_activity").Scan(&pids); err != nil {
		s.t.Fatal(err)
	}
	pids = append(pids, parent)
	for _, pid := range pids {
		_ = syscall.Kill(pid, sig)
	}
	return pids
}

// remove stops the server and removes its data. A server that was killed starts once more,
// which removes what it has left behind in the kernel.
func (s *Server) remove() {
	s.Thaw()
	if !s.runs() {
		_ = s.start()
	}
	s.end(syscall.SIGQUIT)
	_ = os.RemoveAll(s.data)
}

// StartStandby starts a standby that follows the server and can be read. It stops when
// the test ends.
func (s *Server) StartStandby() *Server {
	s.t.Helper()
	data, err := newPath("data")
	if err != nil {
		s.t.Fatal(err)
	}
	out, err := command("pg_basebackup", "--pgdata", data, "--dbname", s.URL("postgres"),
		"--checkpoint", "fast", "--write-recovery-conf", "--no-sync").CombinedOutput()
	if err != nil {
		s.t.Fatalf("pg_basebackup: %v: %s", err, out)
	}
	standby, err := start(s.t, data, s.settings)
	if err != nil {
		s.t.Fatal(err)
	}
	return standby
}

// Synchronous makes commits on the server wait for a standby. It returns once one follows.
func (s *Server) Synchronous() {
	s.t.Helper()
	s.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = '*'", "SELECT pg_reload_conf()")
	if err := eventually(func() error {
		follows, err := query[bool](s, "SELECT EXISTS (SELECT FROM pg_stat_replication WHERE sync_state = 'sync')")
		if err == nil && !follows {
			err = errors.New(s.Addr + " has no synchronous standby")
		}
		return err
	}); err != nil {
		s.t.Fatal(err)
	}
}

// Promote makes a standby a primary, and returns once it is one. Its commits do not wait for
// another standby.
func (s *Server) Promote() {
	s.t.Helper()
	ok, err := query[bool](s, fmt.Sprintf("SELECT pg_promote(true, %d)", int(startTimeout.Seconds())))
	if err != nil || !ok {
		s.t.Fatalf("pg_promote of %s = %v, %v", s.Addr, ok, err)
	}
	s.Exec("postgres", "ALTER SYSTEM SET synchronous_standby_names = ''", "SELECT pg_reload_conf()")
}

// query returns the only value of the answer to a statement.
func query[T any](s *Server, text string) (value T, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	conn, err := pgx.Connect(ctx, s.URL("postgres"))
	if err != nil {
		return value, err
	}
	defer conn.Close(ctx)
	return value, conn.QueryRow(ctx, text).Scan(&value)
}

// startPooler starts PgBouncer in transaction mode in front of the server with a database.
func startPooler(program, databaseURL string) (addr string, err error) {
	config, err := pgx.ParseConfig(databaseURL)
	if err != nil {
		return "", err
	}
	if addr, err = freeAddr(); err != nil {
		return "", err
	}
	path, err := newPath("pooler")
	if err != nil {
		return "", err
	}
	host, port, _ := strings.Cut(addr, ":")
	if err := writeFile(path, fmt.Sprintf(`[databases]
* = host=%s port=%d user=%s password=%s
[pgbouncer]
listen_addr = %s
listen_port = %s
unix_socket_dir =
pool_mode = transaction
default_pool_size = 8
max_client_conn = 1000
server_login_retry = 1
auth_type = any
pidfile = %s
`, config.Host, config.Port, config.User, config.Password, host, port, filepath.Join(filepath.Dir(path), "pooler"+port+".pid"))); err != nil {
		return "", err
	}
	if err := background(program, "-q", path).Start(); err != nil {
		return "", err
	}
	return addr, eventually(func() error {
		conn, err := net.Dial("tcp", addr)
		if err == nil {
			err = conn.Close()
		}
		return err
	})
}
