package redistest

import "syscall"

// dieWithParent has the kernel kill a server whose test was killed.
func dieWithParent() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
