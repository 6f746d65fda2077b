//go:build unix

package postgrestest

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"
)

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
