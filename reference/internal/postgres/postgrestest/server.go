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
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// startTimeout is how long a server may take to start or to follow another.
const startTimeout = 2 * time.Minute

// count numbers the data directories.
var count atomic.Int64

// A Server is one PostgreSQL server. Its methods fail the test that started it.
type Server struct {
	Addr string // host:port

	t        testing.TB // nil: shared
	data     string
	settings []string
	cmd      *exec.Cmd
	ended    chan struct{} // closed when cmd has ended
}

// Start starts a server with settings such as "max_connections=10", and waits until it
// answers. It stops when the test ends.
//
// Commits wait for the log to be written, but not for the disk, which a killed server
// does not need, unless the settings have "fsync=on".
func Start(t testing.TB, settings ...string) *Server {
	t.Helper()
	require(t)
	data, err := newData()
	if err != nil {
		t.Fatal(err)
	}
	s, err := start(t, data, settings)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// start starts a server on a free port. Without a test it runs until this process ends.
func start(t testing.TB, data string, settings []string) (s *Server, err error) {
	const attempts = 5 // another process may take the port meanwhile
	for range attempts {
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

func freeAddr() (string, error) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return "", err
	}
	defer l.Close()
	return l.Addr().String(), nil
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
	// Not a pipe, whose end would not come before that of the last process of a server.
	log, err := os.Create(s.data + ".log")
	if err != nil {
		return err
	}
	defer log.Close()
	cmd, ended := command("postgres", args...), make(chan struct{})
	cmd.Stdout, cmd.Stderr = log, log
	cmd.SysProcAttr.Setpgid = true // an interrupted test stops it by itself
	dieWithParent(cmd.SysProcAttr)
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
		return fmt.Errorf("%w: %s", err, text)
	}
	return nil
}

// check returns an error unless this server answers on its port, rather than another.
func (s *Server) check() error {
	if !s.runs() {
		return errEnded
	}
	var data string
	if err := s.query("SELECT current_setting('data_directory')", &data); err != nil {
		return err
	}
	if data != s.data {
		return fmt.Errorf("another server answers on %s", s.Addr)
	}
	return nil
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
func (s *Server) URL(database string) string {
	return s.UserURL(userName, password, database)
}

// UserURL returns the URL of a database for a user.
func (s *Server) UserURL(user, password, database string) string {
	return (&url.URL{
		Scheme: "postgres", User: url.UserPassword(user, password), Host: s.Addr,
		Path: "/" + database, RawQuery: "sslmode=disable",
	}).String()
}

// Password is the password in [Server.URL], which nothing must show.
const Password = password

// Exec runs statements in a database.
func (s *Server) Exec(database string, statements ...string) {
	s.t.Helper()
	Exec(s.t, s.URL(database), statements...)
}

// eventually calls f until it succeeds, and returns its last error if it does not in
// time.
func eventually(f func() error) error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := f()
		if err == nil || errors.Is(err, errEnded) || time.Now().After(deadline) {
			return err
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// Kill kills the server with SIGKILL, like a crash.
func (s *Server) Kill() {
	if !s.runs() {
		return
	}
	// Its processes would notice by themselves, but still answer for a moment. A stopped
	// server starts no further ones.
	_ = s.cmd.Process.Signal(syscall.SIGSTOP)
	for pid := range family(s.cmd.Process.Pid) {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	s.end(syscall.SIGKILL)
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
	// The processes of a killed server keep its data in use until they have ended.
	var err error
	for range 100 {
		if err = s.start(); !errors.Is(err, errEnded) {
			break
		}
		time.Sleep(50 * time.Millisecond)
	}
	if err != nil {
		s.t.Fatal(err)
	}
}

// Freeze stops the server with SIGSTOP: until Thaw its connections stay open and it
// answers nothing. It waits until the signal has had its effect on all processes, also on
// one that was started meanwhile.
func (s *Server) Freeze() {
	s.t.Helper()
	for range 1000 {
		s.signalAll(syscall.SIGSTOP)
		stopped := true
		for _, state := range family(s.cmd.Process.Pid) {
			stopped = stopped && (state == 'T' || state == 'Z')
		}
		if stopped {
			return
		}
		time.Sleep(time.Millisecond)
	}
	s.t.Fatal("the server does not stop")
}

// Thaw continues a frozen server.
func (s *Server) Thaw() { s.signalAll(syscall.SIGCONT) }

func (s *Server) signalAll(sig syscall.Signal) {
	s.t.Helper()
	parent := s.cmd.Process.Pid
	for pid := range family(parent) {
		if err := syscall.Kill(pid, sig); err != nil && pid == parent {
			s.t.Fatal(err)
		}
	}
}

// remove stops the server and removes its data.
func (s *Server) remove() {
	if s.runs() {
		s.signalAll(syscall.SIGCONT)
		s.end(syscall.SIGQUIT)
	}
	s.removeSharedMemory()
	_ = os.RemoveAll(s.data)
}

// removeSharedMemory removes what a killed server has left behind in the kernel.
func (s *Server) removeSharedMemory() {
	pidFile, err := os.ReadFile(filepath.Join(s.data, "postmaster.pid"))
	lines := strings.Split(string(pidFile), "\n")
	if err != nil || len(lines) < 7 {
		return // it was stopped
	}
	if keys := strings.Fields(lines[6]); len(keys) == 2 {
		if _, err := strconv.Atoi(keys[1]); err == nil {
			_ = exec.Command("ipcrm", "-m", keys[1]).Run()
		}
	}
}

// StartStandby starts a standby that follows the server and can be read. It stops when
// the test ends.
func (s *Server) StartStandby() *Server {
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
	standby, err := start(s.t, data, s.settings)
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
