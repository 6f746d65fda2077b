package server

import (
	"runtime"
	"testing"
)

var sink []byte

// collections returns how many collections the garbage of a few thousand requests takes.
func collections() int {
	runtime.GC()
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	for range 32 << 10 {
		sink = make([]byte, 1<<10)
	}
	runtime.ReadMemStats(&after)
	return int(after.NumGC - before.NumGC)
}

func TestReserveMakesCollectionsRare(t *testing.T) {
	t.Setenv("GOGC", "")
	t.Setenv("GOMEMLIMIT", "")
	release := reserveHeap()
	if n := collections(); n > 0 {
		t.Errorf("%d collections for 32 MiB with a reserve of %d MiB, want none", n, heapReserve>>20)
	}
	release()
	t.Setenv("GOGC", "100")
	defer reserveHeap()()
	if n := collections(); n == 0 {
		t.Error("no collections for 32 MiB although the operator has set GOGC")
	}
}
