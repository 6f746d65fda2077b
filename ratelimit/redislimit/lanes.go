package redislimit

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

// lanes finds the lane for a partition. A client of one server has one lane. In
// a cluster each master has its own, so that one that does not answer does not
// delay the subjects of others. The master of a lane may be out of date: the client
// still finds the right one, but its batches may be smaller.
type lanes struct {
	first   *lane // where everything goes until the masters are known
	newLane func() *lane
	keys    *keys

	cluster *redis.ClusterClient // nil: there is one lane
	table   atomic.Pointer[[partitions]*lane]
	known   atomic.Int64 // when the table was made, Unix nanoseconds
	doubted atomic.Int64 // when the client last had to ask for the masters

	mu       sync.Mutex
	byMaster map[*redis.Client]*lane
}

// mastersAge is how old the table of masters gets, and how often the client has to
// ask for them.
const mastersAge = time.Second

func (l *lanes) init(client redis.UniversalClient, k *keys, flights int, send func([]*group)) {
	l.keys = k
	l.cluster, _ = client.(*redis.ClusterClient)
	l.newLane = func() *lane { return &lane{limit: flights, send: send} }
	if l.cluster != nil {
		l.byMaster = map[*redis.Client]*lane{}
		l.newLane = func() *lane {
			return &lane{limit: flights, send: func(groups []*group) {
				send(groups)
				l.refresh()
			}}
		}
	}
	l.first = l.newLane()
}

// of returns the lane for a partition.
func (l *lanes) of(p int) *lane {
	if t := l.table.Load(); t != nil {
		return t[p]
	}
	return l.first
}

// refresh updates the table, if it is old and no other goroutine does.
func (l *lanes) refresh() {
	if due(&l.known) {
		go l.learn()
	}
}

// doubt has the client ask the cluster for its masters, since one of them has not
// answered. It would do so by itself once a minute, and when a server sends it
// to another one, which a dead server does not.
func (l *lanes) doubt() {
	if l.cluster != nil && due(&l.doubted) {
		l.cluster.ReloadState(context.Background())
	}
}

// due reports whether the last time is mastersAge ago. It is then now.
func due(last *atomic.Int64) bool {
	now, then := time.Now().UnixNano(), last.Load()
	return now-then >= int64(mastersAge) && last.CompareAndSwap(then, now)
}

// learn asks the client, which knows the masters from the server, or finds out.
func (l *lanes) learn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	table := new([partitions]*lane)
	byMaster := make(map[*redis.Client]*lane, len(l.byMaster))
	for p := range table {
		master, err := l.cluster.MasterForKey(context.Background(), l.keys.index(p))
		if err != nil {
			return // the old table is good enough
		}
		if byMaster[master] == nil {
			byMaster[master] = l.byMaster[master]
			if byMaster[master] == nil {
				byMaster[master] = l.newLane()
			}
		}
		table[p] = byMaster[master]
	}
	l.byMaster = byMaster
	l.table.Store(table)
}
