package main

import (
	"os/exec"
	"syscall"
)

// endWithParent has the kernel kill a program when this process ends, even by SIGKILL.
func endWithParent(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
}
