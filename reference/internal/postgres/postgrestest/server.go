//go:build unix

package postgrestest

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"os/exec"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
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
