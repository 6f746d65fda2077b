//go:build unix

package redistest

import (
	"bytes"
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// startTimeout is how long a server may take to start, or a cluster to form.
const startTimeout = time.Minute

// A Server is one redis-server.
type Server struct {
	Addr string // host:port

	t    testing.TB
	args []string
	cmd  *exec.Cmd
	log  *logBuffer
}

// Start starts a server with the given arguments in addition to its own, such as
// "--maxmemory", "5mb", and waits until it answers.
func Start(t testing.TB, args ...string) *Server {
	t.Helper()
	require(t)
	const attempts = 5 // another process may take the port meanwhile
	for range attempts - 1 {
		if s := newServer(t, args); s.start() == nil {
			return s
		}
	}
	s := newServer(t, args)
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// require skips the test, or fails it, if there is no redis-server.
func require(t testing.TB) {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err == nil {
		return
	}
	if os.Getenv("GATEHOUSE_REQUIRE_SERVERS") == "1" {
		t.Fatal("redis-server is not on this machine, and GATEHOUSE_REQUIRE_SERVERS=1")
	}
	t.Skip("skipped: redis-server is not on this machine")
}

func newServer(t testing.TB, args []string) *Server {
	t.Helper()
	// A cluster's bus listens 10000 ports higher.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	port := l.Addr().(*net.TCPAddr).Port
	s := &Server{Addr: l.Addr().String(), t: t}
	s.args = append([]string{
		"--port", strconv.Itoa(port), "--bind", "127.0.0.1", "--dir", t.TempDir(),
		"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
	}, args...)
	t.Cleanup(s.Kill)
	return s
}

func (s *Server) start() error {
	s.log = new(logBuffer)
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = dieWithParent()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	err := eventually(func() error { // the client would log each attempt
		conn, err := net.Dial("tcp", s.Addr)
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		return fmt.Errorf("%w: %s", err, s.log)
	}
	c := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: time.Minute})
	defer c.Close()
	return eventually(func() error {
		// Another server may have had the port first.
		info, err := c.InfoMap(context.Background(), "server").Result()
		if err == nil && info["Server"]["process_id"] != strconv.Itoa(s.cmd.Process.Pid) {
			err = fmt.Errorf("another server answers on %s", s.Addr)
		}
		return err
	})
}

// Client returns a client of the server, which is closed when the test ends.
func (s *Server) Client() *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: time.Minute})
	s.t.Cleanup(func() { c.Close() })
	return c
}

// Kill kills the server with SIGKILL, like a crash.
func (s *Server) Kill() {
	if s.cmd == nil || s.cmd.Process == nil || s.cmd.ProcessState != nil {
		return
	}
	_ = s.cmd.Process.Kill()
	_ = s.cmd.Wait()
}

// Stop stops a server that runs with SIGSTOP: until Cont its connections stay open and it
// answers nothing. It waits until the signal has had its effect.
func (s *Server) Stop() {
	s.t.Helper()
	s.signal(syscall.SIGSTOP)
	var status syscall.WaitStatus
	for {
		_, err := syscall.Wait4(s.cmd.Process.Pid, &status, syscall.WUNTRACED, nil)
		switch {
		case err == syscall.EINTR: // by another signal
		case err != nil:
			s.t.Fatal(err)
		case status.Stopped():
			return
		default:
			s.t.Fatalf("the server has ended instead of stopping: %v", status)
		}
	}
}

// Cont continues a stopped server.
func (s *Server) Cont() { s.signal(syscall.SIGCONT) }

func (s *Server) signal(sig syscall.Signal) {
	s.t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		s.t.Fatal(err)
	}
}

// Restart kills the server, if it runs, and starts it on the same port. It is empty,
// unless its arguments turn on the append-only file.
func (s *Server) Restart() {
	s.t.Helper()
	s.Kill()
	if err := s.start(); err != nil {
		s.t.Fatal(err)
	}
}

// eventually calls f until it succeeds, and returns its last error if it does
// not in time.
func eventually(f func() error) error {
	deadline := time.Now().Add(startTimeout)
	for {
		err := f()
		if err == nil || time.Now().After(deadline) {
			return err
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// A logBuffer keeps the beginning of the log of a server.
type logBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logBuffer) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.b.Len() < 1<<16 {
		l.b.Write(p)
	}
	return len(p), nil
}

func (l *logBuffer) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}
