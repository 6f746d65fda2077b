//go:build unix

package redistest_test

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit/internal/redistest"
)

func TestServer(t *testing.T) {
	s := redistest.Start(t)
	c := s.Client()
	ctx := context.Background()
	if err := c.Set(ctx, "key", "value", 0).Err(); err != nil {
		t.Fatalf("a server that was started does not answer: %v", err)
	}
	s.Restart()
	if n, err := c.DBSize(ctx).Result(); err != nil || n != 0 {
		t.Errorf("after a restart: %d keys, %v, want none", n, err)
	}
	s.Kill()
	if err := c.Ping(ctx).Err(); err == nil {
		t.Error("a server that was killed answers")
	}
}

func TestCluster(t *testing.T) {
	c := redistest.StartClusterWithReplicas(t).Client()
	ctx := context.Background()
	for _, key := range []string{"a", "b", "c", "d"} {
		if err := c.Set(ctx, key, "value", 0).Err(); err != nil {
			t.Errorf("setting %s in the cluster: %v", key, err)
		}
	}
}

func TestReplicated(t *testing.T) {
	r := redistest.StartReplicated(t)
	ctx := context.Background()
	if err := r.Client().Set(ctx, "key", "value", 0).Err(); err != nil {
		t.Fatalf("the sentinel did not lead to the master: %v", err)
	}
	if n, err := r.Master.Client().Wait(ctx, 1, startTimeout).Result(); err != nil || n != 1 {
		t.Fatalf("%d replicas have what was written, %v, want 1", n, err)
	}
	if value, err := r.Replica.Client().Get(ctx, "key").Result(); err != nil || value != "value" {
		t.Errorf("the replica has %q, %v", value, err)
	}
}

func TestProxy(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr)
	c := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1})
	defer c.Close()
	ctx := context.Background()
	for bytes := range len("+PONG\r\n") {
		if err := c.Ping(ctx).Err(); err != nil {
			t.Fatalf("through a proxy: %v", err)
		}
		p.CutAfter(bytes)
		if err := c.Ping(ctx).Err(); err == nil {
			t.Errorf("a reply that was cut after %d bytes arrived", bytes)
		}
	}
	if n := p.Cuts(); n != int64(len("+PONG\r\n")) {
		t.Errorf("%d cuts were made, want %d", n, len("+PONG\r\n"))
	}
}

func TestSlowProxy(t *testing.T) {
	s := redistest.Start(t)
	p := redistest.StartProxy(t, s.Addr)
	c := redis.NewClient(&redis.Options{Addr: p.Addr, MaxRetries: -1})
	defer c.Close()
	ctx := context.Background()
	if err := c.Ping(ctx).Err(); err != nil {
		t.Fatalf("through a proxy: %v", err)
	}
	const delay = 20 * time.Millisecond
	p.Slow(delay)
	start := time.Now()
	if err := c.Ping(ctx).Err(); err != nil {
		t.Errorf("a slow reply did not arrive: %v", err)
	}
	if took := time.Since(start); took < delay {
		t.Errorf("a reply that is held back for %v arrived after %v", delay, took)
	}
	p.Slow(time.Hour)
	p.Slow(0)
	if err := c.Ping(ctx).Err(); err != nil {
		t.Errorf("through a proxy that is slow no longer: %v", err)
	}
}

func TestAppendOnlyFile(t *testing.T) {
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "always")
	c := s.Client()
	ctx := context.Background()
	if err := c.Set(ctx, "key", "value", 0).Err(); err != nil {
		t.Fatal(err)
	}
	s.Restart()
	if value, err := c.Get(ctx, "key").Result(); err != nil || value != "value" {
		t.Errorf("a server with an append-only file has %q after a restart, %v", value, err)
	}
}

const startTimeout = time.Minute
