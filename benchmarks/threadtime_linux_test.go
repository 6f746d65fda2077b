package benchmarks

import (
	"syscall"
	"time"
	"unsafe"
)

// threadTime returns the processor time of the calling thread, to which the
// goroutine has to be locked: what is not in it, others had the processor for.
func threadTime() time.Duration {
	const threadCPU = 3 // CLOCK_THREAD_CPUTIME_ID
	var t syscall.Timespec
	if _, _, err := syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, threadCPU, uintptr(unsafe.Pointer(&t)), 0); err != 0 {
		return 0
	}
	return time.Duration(t.Nano())
}
