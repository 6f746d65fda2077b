// Package race makes tests shorter under the race detector, which makes them about ten
// times slower.
//
//	for seed := range race.Fewer(300) {
//
// The race detector looks for unsynchronized access to memory, which the first of many
// random histories show as well as all of them. Whether the numbers are right, the tests
// without the race detector find out, and those run everything.
//
// A long test that calls the code from one goroutine has no race to find. It begins with
//
//	race.Skip(t)
package race

import (
	"runtime/debug"
	"slices"
	"testing"
)

var enabled = func() bool {
	info, ok := debug.ReadBuildInfo()
	return ok && slices.Contains(info.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}()

// Fewer returns n, or under the race detector a tenth of it, and at least 1.
func Fewer(n int) int {
	if enabled {
		return max(n/10, 1)
	}
	return n
}

// Skip skips a test of one goroutine under the race detector.
func Skip(t testing.TB) {
	t.Helper()
	if enabled {
		t.Skip("skipped under the race detector: the test has one goroutine, and is long")
	}
}
