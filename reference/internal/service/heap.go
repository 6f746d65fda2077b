package service

import (
	"os"
	"runtime"
)

// heapReserve is how much the heap of a server may grow between two collections, beyond
// the doubling that the garbage collector allows.
const heapReserve = 64 << 20

// reserveHeap makes garbage collections of a small heap rarer: with the few megabytes
// that a server needs, there are dozens in a second under load, each of which scans
// every stack. The collector runs when the heap has doubled, so it gets a large object
// that is never used. The system provides no memory for pages that are not written, and
// the collector does not read an object without pointers. The function that it returns
// releases the object.
//
// It does nothing if the operator has tuned the collector with GOGC or GOMEMLIMIT.
func reserveHeap() (release func()) {
	for _, name := range []string{"GOGC", "GOMEMLIMIT"} {
		if os.Getenv(name) != "" {
			return func() {}
		}
	}
	reserve := make([]byte, heapReserve)
	return func() { runtime.KeepAlive(reserve) }
}
