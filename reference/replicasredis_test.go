//go:build unix

package main_test

import (
	"context"
	"net"
	"os/exec"
	"strconv"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"
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
			if err := m.Restart(); err != nil {
				t.Fatal(err)
			}
		}}
	}
	const attempts = 5 // another process may take the port meanwhile
	for range attempts {
		if r := startRedisServer(t); r != nil {
			return r
		}
	}
	t.Fatal("redis-server does not start")
	return nil
}

// startRedisServer returns nil if the server ends at once.
func startRedisServer(t *testing.T) *sharedRedis {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	r := &sharedRedis{addr: l.Addr().String()}
	l.Close()
	dir := t.TempDir()
	var cmd *exec.Cmd
	var ended chan struct{}
	start := func() (ready bool) {
		cmd = exec.Command("redis-server", "--port", port, "--bind", "127.0.0.1", "--dir", dir, "--save", "",
			"--appendonly", "yes", "--appendfsync", "no") // a slow disk must not delay it
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		go func() {
			cmd.Wait()
			close(done)
		}()
		ended = done
		c := redis.NewClient(&redis.Options{Addr: r.addr, ReadTimeout: time.Minute})
		defer c.Close()
		eventually(t, "redis-server answers or ends", func() bool {
			select {
			case <-done:
				return true
			default:
				ready = c.Ping(context.Background()).Err() == nil
				return ready
			}
		})
		return ready
	}
	r.kill = func() {
		cmd.Process.Kill()
		<-ended
	}
	r.back = func() {
		if !start() {
			t.Fatal("redis-server does not start again")
		}
	}
	if !start() {
		return nil
	}
	t.Cleanup(func() { r.kill() })
	return r
}
