//go:build unix

package postgrestest

import (
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
)

// startTimeout is how long a server may take to start or to follow another.
const startTimeout = 30 * time.Second

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

// Kill kills the server with SIGKILL, like a crash.
func (s *Server) Kill() {
	if !s.runs() {
		return
	}
	// Its processes would notice by themselves, but still answer for a moment. A stopped
	// server starts no further ones.
	_ = s.cmd.Process.Signal(syscall.SIGSTOP)
	for _, child := range backends(s.cmd.Process.Pid) {
		_ = syscall.Kill(child, syscall.SIGKILL)
	}
	s.end(syscall.SIGKILL)
}

// backends returns the processes whose parent is a process, if the machine can tell.
func backends(parent int) (pids []int) {
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=").Output()
	for line := range strings.Lines(string(out)) {
		var pid, ppid int
		if n, _ := fmt.Sscan(line, &pid, &ppid); n == 2 && ppid == parent {
			pids = append(pids, pid)
		}
	}
	return pids
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

// Restart kills the server, if it runs, and starts it on the same port and data, with
// further settings.
func (s *Server) Restart(settings ...string) {
	s.t.Helper()
	s.Kill()
	s.settings = append(s.settings, settings...)
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
// answers nothing.
func (s *Server) Freeze() { s.signalAll(syscall.SIGSTOP) }

// Thaw continues a frozen server.
func (s *Server) Thaw() { s.signalAll(syscall.SIGCONT) }

func (s *Server) signalAll(sig syscall.Signal) {
	s.t.Helper()
	pid := s.cmd.Process.Pid
	for _, p := range append([]int{pid}, backends(pid)...) {
		if err := syscall.Kill(p, sig); err != nil && p == pid {
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
