//go:build unix

package faults

import (
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
)

// A stage is the server of one run, and what is done to it.
type stage struct {
	client redis.UniversalClient // of the engine
	beside redis.UniversalClient // of the test, to read what was counted
	hurt   func(*run)            // returns when the fault has come, or is over unless it lasts
	felt   func(*run) bool       // of a fault that leaves the circuit closed: whether it has lasted long enough
	heal   func(*run)            // of a fault that lasts
}

// timeout is that of the engine's client, as package redislimit advises.
const timeout = 300 * time.Millisecond

func newClient(t *testing.T, addr string) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: addr, DialTimeout: timeout, ReadTimeout: timeout, DialerRetries: 1, MaxRetries: -1})
	t.Cleanup(func() { c.Close() })
	return c
}

func killed(t *testing.T) stage {
	// Without fsync the kernel has what was written before each reply, which is
	// enough when the process alone dies.
	s := redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no")
	return stage{
		client: newClient(t, s.Addr), beside: clientOf(t, s),
		hurt: func(*run) { s.Kill() },
		heal: func(*run) { s.Restart() },
	}
}

func stopped(t *testing.T) stage {
	s := redistest.Start(t)
	return stage{
		client: newClient(t, s.Addr), beside: clientOf(t, s),
		hurt: func(*run) { s.Stop() },
		heal: func(*run) { s.Cont() },
	}
}

func emptied(t *testing.T) stage {
	s := redistest.Start(t)
	return stage{
		client: newClient(t, s.Addr), beside: clientOf(t, s),
		hurt: func(r *run) {
			s.Kill()
			r.await("the callers to have what the server had answered", r.load.turned())
			r.forget(func(*subject) int64 { return 0 })
			s.Restart()
		},
	}
}

func replaced(t *testing.T) stage {
	s := redistest.StartReplicated(t)
	client := redis.NewFailoverClient(&redis.FailoverOptions{
		MasterName: redistest.MasterName, SentinelAddrs: []string{s.Sentinel.Addr},
		DialTimeout: timeout, ReadTimeout: timeout, DialerRetries: 1, MaxRetries: -1,
	})
	t.Cleanup(func() { client.Close() })
	replica := clientOf(t, s.Replica)
	return stage{
		client: client, beside: replica,
		hurt: func(r *run) {
			s.Master.Kill()
			known := map[*subject]int64{}
			for _, s := range r.load.subjects {
				known[s] = r.used(s)
			}
			r.await("the callers to have what the master had answered", r.load.turned())
			r.forget(func(s *subject) int64 { return known[s] })
			r.await("the replica to take over", func() bool {
				info, err := replica.InfoMap(t.Context(), "replication").Result()
				return err == nil && info["Replication"]["role"] == "master"
			})
		},
	}
}

func cut(t *testing.T) stage {
	s := redistest.Start(t)
	proxy := redistest.StartProxy(t, s.Addr)
	return stage{
		client: newClient(t, proxy.Addr), beside: clientOf(t, s),
		hurt: func(r *run) {
			const atLeast = 4
			for i := 1; i <= atLeast || !r.felt(); i++ {
				proxy.CutAfter(i * 997 % 5000)
				r.await("a cut", func() bool { return proxy.Cuts() == int64(i) })
			}
		},
	}
}

func slow(t *testing.T) stage {
	s := redistest.Start(t)
	proxy := redistest.StartProxy(t, s.Addr)
	return stage{
		client: newClient(t, proxy.Addr), beside: clientOf(t, s),
		hurt: func(*run) { proxy.Slow(120 * time.Millisecond) },
		heal: func(*run) { proxy.Slow(0) },
	}
}

func full(t *testing.T) stage {
	s := redistest.Start(t, "--maxmemory", "16mb", "--maxmemory-policy", "noeviction")
	other := clientOf(t, s)
	return stage{
		client: newClient(t, s.Addr), beside: clientOf(t, s),
		hurt: func(*run) {
			must(t, other.SetRange(t.Context(), "another's", 16<<20, "x").Err())
		},
		heal: func(*run) {
			must(t, other.Del(t.Context(), "another's").Err())
		},
	}
}

// clientOf returns a client that is closed when the test ends.
func clientOf(t testing.TB, s *redistest.Server) *redis.Client {
	c := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: time.Minute})
	t.Cleanup(func() { c.Close() })
	return c
}

func clientOfCluster(t testing.TB, c *redistest.Cluster) *redis.ClusterClient {
	client := redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs(), ReadTimeout: time.Minute})
	t.Cleanup(func() { client.Close() })
	return client
}
