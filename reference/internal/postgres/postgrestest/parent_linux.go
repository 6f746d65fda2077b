package postgrestest

import "syscall"

// dieWithParent has the kernel stop a server whose test was killed. SIGQUIT leaves
// nothing of it behind in the kernel, as SIGKILL would.
func dieWithParent(attr *syscall.SysProcAttr) { attr.Pdeathsig = syscall.SIGQUIT }
