//go:build unix

package redistest

import (
	"fmt"
	"net"
	"slices"
	"strconv"
	"testing"
)

// A Cluster is three masters that share the slots equally, each with a replica
// if it was asked for.
type Cluster struct {
	Masters  []*Server
	Replicas []*Server // of the master with the same index

	t   testing.TB
	ids []string // of the masters
}

const slots = 16384

// StartCluster starts a cluster of three masters, and waits until each of them
// finds it complete. None of them finds that another one has failed before Notice.
func StartCluster(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return startCluster(t, false, args)
}

// StartClusterWithReplicas starts a cluster in which each master has a replica
// that takes over, after Notice, when the master has not answered for a second.
func StartClusterWithReplicas(t testing.TB, args ...string) *Cluster {
	t.Helper()
	return startCluster(t, true, args)
}

func startCluster(t testing.TB, replicas bool, args []string) *Cluster {
	t.Helper()
	c := &Cluster{t: t}
	var buses []string
	node := func() *Server {
		buses = append(buses, freePort(t)) // by default it is 10000 above the port
		return Start(t, slices.Concat([]string{
			"--cluster-enabled", "yes", "--cluster-port", buses[len(buses)-1],
			"--cluster-node-timeout", "3600000", "--cluster-replica-validity-factor", "0",
		}, args)...)
	}
	for range 3 {
		c.Masters = append(c.Masters, node())
	}
	for range c.Masters {
		if replicas {
			c.Replicas = append(c.Replicas, node())
		}
	}
	nodes := slices.Concat(c.Masters, c.Replicas)
	for i, node := range nodes {
		// Masters with equal epochs would take new ones, of which other nodes hear later. Until
		// then, a replica that does not know its master's epoch gets no vote of one that does.
		node.must("cluster", "set-config-epoch", strconv.Itoa(i+1))
	}
	for i, m := range c.Masters {
		from, to := i*slots/len(c.Masters), (i+1)*slots/len(c.Masters)-1
		m.must("cluster", "addslotsrange", strconv.Itoa(from), strconv.Itoa(to))
		c.ids = append(c.ids, m.must("cluster", "myid")[0])
	}
	for i, node := range nodes {
		host, port, _ := net.SplitHostPort(node.Addr)
		c.Masters[0].must("cluster", "meet", host, port, buses[i])
	}
	for _, node := range nodes {
		// The state alone does not say that the node knows all slots: with
		// cluster-require-full-coverage no, it is ok before.
		node.await("cluster info", "cluster_state:ok", fmt.Sprint("cluster_known_nodes:", len(nodes)), fmt.Sprint("cluster_slots_ok:", slots))
	}
	for i, r := range c.Replicas {
		r.must("cluster", "replicate", c.ids[i])
	}
	for _, r := range c.Replicas {
		r.awaitSync()
	}
	return c
}

// Notice has the nodes, all of which run, find from now on that another one has failed when it
// has not answered for a second. On a busy machine that may be one that runs.
func (c *Cluster) Notice() {
	c.t.Helper()
	for _, node := range slices.Concat(c.Masters, c.Replicas) {
		node.must("config", "set", "cluster-node-timeout", "1000")
	}
}

// Addrs returns the addresses of the masters.
func (c *Cluster) Addrs() (addrs []string) {
	for _, m := range c.Masters {
		addrs = append(addrs, m.Addr)
	}
	return addrs
}

// A Migration is a slot of a cluster on its way from one master to another.
type Migration struct {
	cluster  *Cluster
	slot     string
	from, to int
}

// Migrate begins to move a slot from one of the masters to another. The slot's keys
// stay where they are until Keys or Finish moves them.
func (c *Cluster) Migrate(slot, from, to int) *Migration {
	c.t.Helper()
	m := &Migration{c, strconv.Itoa(slot), from, to}
	c.Masters[to].must("cluster", "setslot", m.slot, "importing", c.ids[from])
	c.Masters[from].must("cluster", "setslot", m.slot, "migrating", c.ids[to])
	return m
}

// Keys moves at most n keys of the slot. It returns how many it has moved.
func (m *Migration) Keys(n int) int {
	m.cluster.t.Helper()
	from := m.cluster.Masters[m.from]
	keys := from.must("cluster", "getkeysinslot", m.slot, strconv.Itoa(n))
	if len(keys) > 0 {
		host, port, _ := net.SplitHostPort(m.cluster.Masters[m.to].Addr)
		from.must(append([]string{"migrate", host, port, "", "0", strconv.FormatInt(startTimeout.Milliseconds(), 10), "keys"}, keys...)...)
	}
	return len(keys)
}

// Finish moves all keys that are left, and gives the slot to its new master.
func (m *Migration) Finish() {
	m.cluster.t.Helper()
	for m.Keys(100) > 0 {
	}
	masters := m.cluster.Masters
	for _, master := range slices.Concat([]*Server{masters[m.to]}, masters) {
		master.must("cluster", "setslot", m.slot, "node", m.cluster.ids[m.to])
	}
}
