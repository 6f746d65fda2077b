package redislimit

import (
	"cmp"
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
)

// masters has a batcher for each master of a cluster, so that a master that does not
// answer does not delay the subjects of the others. A client of one server has one
// batcher, and its calls never fail because another batch hangs: package failover opens
// its circuit instead. If the table is out of date the client still finds the right master, but
// the batches may be smaller.
type masters struct {
	*sender
	first *batcher // for all partitions, until the masters are known

	table   atomic.Pointer[[partitions]*batcher]
	checked lastTime // when the client was asked for the masters

	mu       sync.Mutex // held while the client is asked
	byMaster map[*redis.Client]*batcher
}

// mastersInterval is the time from one search for the masters to the next.
const mastersInterval = time.Second

// of returns the batcher for a partition.
func (m *masters) of(partition int) *batcher {
	if m.cluster == nil {
		return m.first
	}
	if m.checked.due(mastersInterval) {
		go m.refresh()
	}
	if t := m.table.Load(); t != nil {
		return t[partition]
	}
	return m.first
}

// A health says how the last calls to a master of a cluster ended. An answer shows that the
// master can decide if it charged something, and came while the caller waited for it: a server
// that refuses to write still denies.
type health struct {
	answered atomic.Int64 // when such an answer came last, Unix nanoseconds
	failing  atomic.Int64 // when a call failed first since then; 0: none did
}

// judge notes how a call to a master ended, and returns its error. That wraps
// partial.ErrOutage if another master can decide: its last call did not fail, and it has
// answered since this one began to fail, or shortly before.
func (m *masters) judge(b *batcher, charged bool, err error) error {
	table := m.table.Load()
	if table == nil || err == nil && !charged || errors.Is(err, context.Canceled) || errors.Is(err, partial.ErrOutage) {
		return err
	}
	now := time.Now().UnixNano()
	if err == nil {
		b.health.answered.Store(now)
		b.health.failing.Store(0)
		return nil
	}
	b.health.failing.CompareAndSwap(0, now)
	since := b.health.failing.Load() - int64(mastersInterval)
	for _, other := range table {
		if other != b && other.health.failing.Load() == 0 && other.health.answered.Load() >= since {
			return m.partial(err)
		}
	}
	return err
}

// refresh makes the table from what the client knows, or asks the cluster for. It
// returns if another goroutine is doing so, which can take long while masters are down.
func (m *masters) refresh() {
	if !m.mu.TryLock() {
		return
	}
	defer m.mu.Unlock()
	table := new([partitions]*batcher)
	byMaster := make(map[*redis.Client]*batcher, len(m.byMaster))
	for p := range table {
		master, err := m.cluster.MasterForKey(context.Background(), m.keys.index(p))
		if err != nil {
			return // the old table is good enough
		}
		b := cmp.Or(byMaster[master], m.byMaster[master])
		if b == nil {
			b = m.newBatcher()
			b.changed = m.logged(master.Options().Addr)
		}
		table[p], byMaster[master] = b, b
	}
	for master, b := range m.byMaster {
		if byMaster[master] == nil {
			b.retire()
		}
	}
	m.byMaster = byMaster
	m.table.Store(table)
}

// logged returns a function that logs that a master hangs, or answers again, or that another
// one has its subjects. Nothing else says so: the other masters keep the circuit of package
// failover closed.
func (m *masters) logged(master string) func(error) {
	return func(hangs error) {
		if hangs == nil {
			m.logger.Info("redislimit: requests for the subjects of the master are decided again", "master", master)
			return
		}
		m.logger.Warn("redislimit: a master of the cluster does not answer: requests for its subjects fail immediately, "+
			"except one at a time; if that goes on, restart the master or promote its replica", "master", master, "error", hangs)
	}
}
