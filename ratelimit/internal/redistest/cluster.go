//go:build unix

package redistest

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"
)

// A Cluster is three masters that share the slots equally, each with a replica
// if it was asked for.
type Cluster struct {
	Masters  []*Server
	Replicas []*Server // of the master with the same index

	t testing.TB
}

const slots = 16384

// StartCluster starts a cluster of three masters, and waits until each of them
// finds it complete.
func StartCluster(t testing.TB, args ...string) *Cluster { return startCluster(t, false, args) }

// StartClusterWithReplicas starts a cluster in which each master has a replica
// that takes over when the master has not answered for a second.
func StartClusterWithReplicas(t testing.TB, args ...string) *Cluster {
	return startCluster(t, true, args)
}

func startCluster(t testing.TB, replicas bool, args []string) *Cluster {
	t.Helper()
	const masters = 3
	args = append([]string{"--cluster-enabled", "yes", "--cluster-node-timeout", "1000"}, args...)
	c := &Cluster{t: t}
	for range masters {
		c.Masters = append(c.Masters, startNode(t, args))
	}
	if replicas {
		for range masters {
			c.Replicas = append(c.Replicas, startNode(t, args))
		}
	}
	if err := c.join(); err != nil {
		t.Fatal(err)
	}
	return c
}

// startNode starts a server with a free port for its bus too.
func startNode(t testing.TB, args []string) *Server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	bus := strconv.Itoa(l.Addr().(*net.TCPAddr).Port)
	l.Close()
	return Start(t, slices.Concat(args, []string{"--cluster-port", bus})...)
}

func (c *Cluster) join() error {
	ctx := context.Background()
	first := c.Masters[0].Client()
	nodes := slices.Concat(c.Masters, c.Replicas)
	for i, m := range c.Masters {
		from, to := i*slots/len(c.Masters), (i+1)*slots/len(c.Masters)-1
		if err := m.Client().ClusterAddSlotsRange(ctx, from, to).Err(); err != nil {
			return fmt.Errorf("giving slots to %s: %w", m.Addr, err)
		}
	}
	for _, node := range nodes {
		if err := meet(ctx, first, node); err != nil {
			return err
		}
	}
	for _, node := range nodes {
		client := node.Client()
		if err := eventually(func() error { return complete(ctx, client, len(nodes)) }); err != nil {
			return err
		}
	}
	for i, r := range c.Replicas {
		id, err := c.Masters[i].Client().ClusterMyID(ctx).Result()
		if err != nil {
			return err
		}
		if err := r.Client().ClusterReplicate(ctx, id).Err(); err != nil {
			return fmt.Errorf("making %s a replica: %w", r.Addr, err)
		}
	}
	for _, r := range c.Replicas {
		client := r.Client()
		if err := eventually(func() error { return inSync(ctx, client) }); err != nil {
			return err
		}
	}
	return nil
}

// meet has the first node learn of another one.
func meet(ctx context.Context, first *redis.Client, node *Server) error {
	info, err := node.Client().ConfigGet(ctx, "cluster-port").Result()
	if err != nil {
		return err
	}
	host, port, err := net.SplitHostPort(node.Addr)
	if err != nil {
		return err
	}
	if err := first.Do(ctx, "cluster", "meet", host, port, info["cluster-port"]).Err(); err != nil {
		return fmt.Errorf("cluster meet %s: %w", node.Addr, err)
	}
	return nil
}

// complete returns an error unless the node knows n nodes and finds all slots
// served. The state alone does not say so: with cluster-require-full-coverage no, it
// is ok before the node has heard of the slots of the others.
func complete(ctx context.Context, node *redis.Client, n int) error {
	info, err := node.ClusterInfo(ctx).Result()
	if err != nil {
		return err
	}
	var state string
	var known, served int
	for line := range strings.Lines(info) {
		_, _ = fmt.Sscanf(line, "cluster_state:%s", &state)
		_, _ = fmt.Sscanf(line, "cluster_known_nodes:%d", &known)
		_, _ = fmt.Sscanf(line, "cluster_slots_ok:%d", &served)
	}
	if state != "ok" || known != n || served != slots {
		return fmt.Errorf("%s: the cluster is %s with %d nodes and %d slots, want ok with %d and %d",
			node.Options().Addr, state, known, served, n, slots)
	}
	return nil
}

// inSync returns an error unless the replica is in sync with its master.
func inSync(ctx context.Context, replica *redis.Client) error {
	info, err := replica.InfoMap(ctx, "replication").Result()
	if err != nil {
		return err
	}
	if r := info["Replication"]; r["role"] != "slave" || r["master_link_status"] != "up" {
		return errors.New(replica.Options().Addr + ": not in sync with its master")
	}
	return nil
}

// Client returns a client of the cluster, which is closed when the test ends.
func (c *Cluster) Client() *redis.ClusterClient {
	addrs := make([]string, 0, len(c.Masters))
	for _, m := range c.Masters {
		addrs = append(addrs, m.Addr)
	}
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: addrs, ReadTimeout: time.Minute})
	c.t.Cleanup(func() { client.Close() })
	return client
}
