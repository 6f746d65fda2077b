// Package testenv says what a test run is allowed to take, and what its machine has.
//
//	func TestRollingRestart(t *testing.T) {
//		testenv.Long(t, "restarts every server of a cluster")
//		redis := testenv.Tool(t, "redis-server")
//
// A test binary that imports it has the flag -long:
//
//	go test ./reference -long
//
// Tests that take long run only with it. What a machine lacks skips a test, with the reason. If the environment has
// GATEHOUSE_REQUIRE_SERVERS=1, it fails the test instead.
package testenv

import (
	"flag"
	"os"
	"os/exec"
	"testing"
)

var long = flag.Bool("long", false, "tests and benchmarks that take long as well")

// IsLong reports whether the run has the flag -long.
func IsLong() bool { return *long }

// Long skips a test unless the run has the flag -long. The reason says what takes long:
// "fills a disk".
func Long(t testing.TB, reason string) {
	t.Helper()
	if !*long {
		t.Skipf("%s, which takes long; -long runs it", reason)
	}
}

// Tool returns the path of a command, or skips or fails the test.
func Tool(t testing.TB, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	if err != nil {
		Missing(t, name)
	}
	return path
}

// Required reports whether nothing may be missing.
func Required() bool { return os.Getenv("GATEHOUSE_REQUIRE_SERVERS") == "1" }

// Missing skips a test for which the machine lacks something, such as "redis-server", or
// fails it if nothing may be missing.
func Missing(t testing.TB, what string) {
	t.Helper()
	if Required() {
		t.Fatalf("%s is not on this machine, and GATEHOUSE_REQUIRE_SERVERS=1", what)
	}
	t.Skipf("%s is not on this machine", what)
}
