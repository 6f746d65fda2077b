//go:build unix && !linux

package postgrestest

import (
	"fmt"
	"os/exec"
	"strings"
	"syscall"
)

// dieWithParent is for Linux. Elsewhere a server outlives a test that is killed.
func dieWithParent(*syscall.SysProcAttr) {}

// family returns the states of a process and of those that it started.
func family(parent int) map[int]byte {
	states := map[int]byte{}
	out, _ := exec.Command("ps", "-A", "-o", "pid=,ppid=,state=").Output()
	for line := range strings.Lines(string(out)) {
		var pid, ppid int
		var state string
		if n, _ := fmt.Sscan(line, &pid, &ppid, &state); n == 3 && (pid == parent || ppid == parent) {
			states[pid] = state[0]
		}
	}
	return states
}
