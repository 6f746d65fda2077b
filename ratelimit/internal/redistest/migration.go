//go:build unix

package redistest

import (
	"context"
	"net"
	"testing"

	"github.com/redis/go-redis/v9"
)

// A Migration is a slot of a cluster on its way from one master to another.
type Migration struct {
	t            testing.TB
	slot         int
	from, to     *redis.Client
	host, port   string // of to
	fromID, toID string
	all          []*redis.Client
}

// Migrate begins to move a slot from one of the masters to another. The slot's keys
// stay where they are until Keys or Finish moves them.
func (c *Cluster) Migrate(slot, from, to int) *Migration {
	c.t.Helper()
	ctx := context.Background()
	m := &Migration{t: c.t, slot: slot}
	for _, master := range c.Masters {
		client := redis.NewClient(&redis.Options{Addr: master.Addr})
		m.all = append(m.all, client)
	}
	m.from, m.to = m.all[from], m.all[to]
	var err error
	if m.host, m.port, err = net.SplitHostPort(c.Masters[to].Addr); err != nil {
		c.t.Fatal(err)
	}
	if m.fromID, err = m.from.ClusterMyID(ctx).Result(); err != nil {
		c.t.Fatal(err)
	}
	if m.toID, err = m.to.ClusterMyID(ctx).Result(); err != nil {
		c.t.Fatal(err)
	}
	m.do(m.to, "cluster", "setslot", slot, "importing", m.fromID)
	m.do(m.from, "cluster", "setslot", slot, "migrating", m.toID)
	return m
}

// Keys moves at most n keys of the slot. It returns how many it has moved.
func (m *Migration) Keys(n int) int {
	m.t.Helper()
	keys, err := m.from.ClusterGetKeysInSlot(context.Background(), m.slot, n).Result()
	if err != nil {
		m.t.Fatal(err)
	}
	if len(keys) == 0 {
		return 0
	}
	args := []any{"migrate", m.host, m.port, "", 0, startTimeout.Milliseconds(), "keys"}
	for _, key := range keys {
		args = append(args, key)
	}
	m.do(m.from, args...)
	return len(keys)
}

// Finish moves all keys that are left, and gives the slot to its new master.
func (m *Migration) Finish() {
	m.t.Helper()
	for m.Keys(100) > 0 {
	}
	m.do(m.to, "cluster", "setslot", m.slot, "node", m.toID)
	for _, client := range m.all {
		m.do(client, "cluster", "setslot", m.slot, "node", m.toID)
		client.Close()
	}
}

func (m *Migration) do(client *redis.Client, args ...any) {
	m.t.Helper()
	if err := client.Do(context.Background(), args...).Err(); err != nil {
		m.t.Fatalf("moving slot %d: %v: %v", m.slot, args, err)
	}
}
