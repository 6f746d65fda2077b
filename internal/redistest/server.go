//go:build unix

// Package redistest starts Redis servers for tests, if redis-server is on the
// machine: one server, with replicas, or a cluster of three masters. They listen
// on free ports of the loopback interface, keep nothing on disk unless their arguments
// say so, and are killed when the test ends.
//
// Without redis-server a test that wants one is skipped, or fails if the
// environment has GATEHOUSE_REQUIRE_SERVERS=1.
package redistest

import (
	"bytes"
	"fmt"
	"net"
	"os/exec"
	"reflect"
	"strconv"
	"sync"
	"syscall"
	"testing"

	"github.com/animalstore/gatehouse/internal/testenv"
)

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
	return start(t, func(port string) []string {
		return append([]string{
			"--port", port, "--bind", "127.0.0.1", "--dir", t.TempDir(),
			"--save", "", "--appendonly", "no", "--repl-diskless-sync-delay", "0",
		}, args...)
	})
}

// start starts a server with the arguments that args returns for a free port.
func start(t testing.TB, args func(port string) []string) *Server {
	t.Helper()
	testenv.Tool(t, "redis-server")
	const attempts = 5 // another process may take the port meanwhile
	for attempt := 1; ; attempt++ {
		port := freePort(t)
		s := &Server{Addr: net.JoinHostPort("127.0.0.1", port), t: t, args: args(port)}
		t.Cleanup(s.Kill)
		err := s.start()
		if err == nil {
			return s
		}
		if attempt == attempts {
			t.Fatal(err)
		}
	}
}

func freePort(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
}

func (s *Server) start() error {
	s.log = new(logBuffer)
	s.cmd = exec.Command("redis-server", s.args...)
	s.cmd.Stdout, s.cmd.Stderr = s.log, s.log
	s.cmd.SysProcAttr = dieWithParent()
	if err := s.cmd.Start(); err != nil {
		return err
	}
	// Another server may have had the port first.
	err := s.eventually("info server", fmt.Sprintf("process_id:%d\r", s.cmd.Process.Pid))
	if err == nil {
		err = s.eventually("ping", "PONG") // an error while it reads its file
	}
	if err != nil {
		return fmt.Errorf("%w: %s", err, s.log)
	}
	return nil
}

// dieWithParent has the kernel kill a server whose test was killed. Only Linux can:
// elsewhere the server outlives the test.
func dieWithParent() *syscall.SysProcAttr {
	attr := new(syscall.SysProcAttr)
	if signal := reflect.ValueOf(attr).Elem().FieldByName("Pdeathsig"); signal.IsValid() {
		signal.SetInt(int64(syscall.SIGKILL))
	}
	return attr
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
