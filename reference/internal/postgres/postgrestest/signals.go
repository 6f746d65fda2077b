//go:build unix

package postgrestest

import (
	"errors"
	"fmt"
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
// answers nothing. It waits until the signal has had its effect on all processes, also on
// one that was started meanwhile.
func (s *Server) Freeze() {
	s.t.Helper()
	for range 1000 {
		s.signalAll(syscall.SIGSTOP)
		if allStopped(s.cmd.Process.Pid) {
			return
		}
		time.Sleep(time.Millisecond)
	}
	s.t.Fatal("the server does not stop")
}

// allStopped reports whether a process and those that it started are stopped, if the
// machine can tell.
func allStopped(parent int) bool {
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,state=").Output()
	for line := range strings.Lines(string(out)) {
		var pid, ppid int
		var state string
		if n, _ := fmt.Sscan(line, &pid, &ppid, &state); n == 3 && (pid == parent || ppid == parent) && !strings.HasPrefix(state, "T") && !strings.HasPrefix(state, "Z") {
			return false
		}
	}
	return true
}

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
