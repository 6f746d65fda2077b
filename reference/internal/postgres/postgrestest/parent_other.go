//go:build unix && !linux

package postgrestest

import "syscall"

// dieWithParent is for Linux. Elsewhere a server outlives a test that is killed.
func dieWithParent(*syscall.SysProcAttr) {}
