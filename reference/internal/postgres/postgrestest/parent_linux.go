package postgrestest

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
)

// dieWithParent has the kernel stop a server whose test was killed. SIGQUIT leaves
// nothing of it behind in the kernel, as SIGKILL would.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }

// family returns the states of a process and of those that it started. It does without
// ps, which many containers lack.
func family(parent int) map[int]byte {
	states := map[int]byte{}
	files, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, file := range files {
		text, _ := os.ReadFile(file) // such as "17 (postgres) S 1 ..."
		var pid, ppid int
		var state byte
		_, _ = fmt.Sscan(string(text), &pid)
		_, rest, _ := bytes.Cut(text, []byte(") "))
		if _, err := fmt.Sscanf(string(rest), "%c %d", &state, &ppid); err == nil && (pid == parent || ppid == parent) {
			states[pid] = state
		}
	}
	return states
}
