// Package redistest starts Redis servers for tests, if redis-server is on the
// machine: one server, with replicas, or a cluster of three masters. They listen
// on free ports of the loopback interface, keep nothing on disk unless their arguments
// say so, and are killed when the test ends.
//
// Without redis-server a test that wants one is skipped, or fails if the
// environment has GATEHOUSE_REQUIRE_SERVERS=1.
package redistest
