//go:build unix

package redistest

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// MasterName is the name of the master in the configuration of the sentinel.
const MasterName = "master"

// Replicated is a master, its replica, and a sentinel that promotes the replica when
// the master has not answered for half a second.
type Replicated struct {
	Master, Replica, Sentinel *Server

	t testing.TB
}

// StartReplicated starts them, and waits until the replica is in sync.
func StartReplicated(t testing.TB) *Replicated {
	t.Helper()
	r := &Replicated{Master: Start(t), t: t}
	host, port, err := net.SplitHostPort(r.Master.Addr)
	if err != nil {
		t.Fatal(err)
	}
	r.Replica = Start(t, "--replicaof", host+" "+port)
	config := filepath.Join(t.TempDir(), "sentinel.conf")
	text := fmt.Sprintf("sentinel monitor %[1]s %[2]s %[3]s 1\nsentinel down-after-milliseconds %[1]s 500\nsentinel failover-timeout %[1]s 5000\n",
		MasterName, host, port)
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.Sentinel = startSentinel(t, config)
	ctx := context.Background()
	master, replica := r.Master.Client(), r.Replica.Client()
	if err := eventually(func() error { return inSync(ctx, replica) }); err != nil {
		t.Fatal(err)
	}
	if err := eventually(func() error { return replicates(ctx, master) }); err != nil {
		t.Fatal(err)
	}
	sentinel := redis.NewSentinelClient(&redis.Options{Addr: r.Sentinel.Addr})
	t.Cleanup(func() { sentinel.Close() })
	if err := eventually(func() error { return knowsReplica(ctx, sentinel) }); err != nil {
		t.Fatal(err)
	}
	return r
}

// startSentinel starts a server that reads config, which it takes as its first
// argument.
func startSentinel(t testing.TB, config string) *Server {
	t.Helper()
	s := newServer(t, nil)
	_, port, err := net.SplitHostPort(s.Addr)
	if err != nil {
		t.Fatal(err)
	}
	s.args = []string{config, "--sentinel", "--port", port, "--bind", "127.0.0.1"}
	if err := s.start(); err != nil {
		t.Fatal(err)
	}
	return s
}

// replicates returns an error unless writes reach the replica. They do so a little
// later than the replica reports that it is in sync.
func replicates(ctx context.Context, master *redis.Client) error {
	conn := master.Conn() // WAIT is about what one connection has written
	defer conn.Close()
	if err := conn.Set(ctx, "written", "", time.Minute).Err(); err != nil {
		return err
	}
	if err := conn.Del(ctx, "written").Err(); err != nil {
		return err
	}
	n, err := conn.Wait(ctx, 1, time.Second).Result()
	if err == nil && n != 1 {
		err = fmt.Errorf("writes reach %d replicas, want 1", n)
	}
	return err
}

// knowsReplica returns an error unless the sentinel knows the replica.
func knowsReplica(ctx context.Context, sentinel *redis.SentinelClient) error {
	replicas, err := sentinel.Replicas(ctx, MasterName).Result()
	if err == nil && len(replicas) != 1 {
		err = fmt.Errorf("the sentinel knows %d replicas, want 1", len(replicas))
	}
	return err
}

// Client returns a client that asks the sentinel for the master. It is closed when
// the test ends.
func (r *Replicated) Client() *redis.Client {
	c := redis.NewFailoverClient(&redis.FailoverOptions{MasterName: MasterName, SentinelAddrs: []string{r.Sentinel.Addr}})
	r.t.Cleanup(func() { c.Close() })
	return c
}
