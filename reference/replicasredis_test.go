//go:build unix

package main_test

import (
	"os/exec"
	"testing"

	"github.com/alicebob/miniredis/v2"

	"github.com/animalstore/gatehouse/internal/redistest"
)

// A sharedRedis is the Redis of several replicas: redis-server if the machine has it, with
// an append-only file, and otherwise one in this process.
type sharedRedis struct {
	addr string
	kill func() // SIGKILL, or as good as that
	back func() // starts it again at the same address, with what it had
}

// startRedis starts a Redis that ends with the test.
func startRedis(t *testing.T) *sharedRedis {
	t.Helper()
	if _, err := exec.LookPath("redis-server"); err != nil {
		t.Log("redis-server is not on this machine, so miniredis is used")
		m := miniredis.RunT(t)
		return &sharedRedis{addr: m.Addr(), kill: m.Close, back: func() {
			must(t, m.Restart())
		}}
	}
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no") // a slow disk must not delay it
	return &sharedRedis{addr: s.Addr, kill: s.Kill, back: s.Restart}
}
