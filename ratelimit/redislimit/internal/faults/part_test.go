//go:build unix

package faults

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit/failover"
	"github.com/animalstore/gatehouse/ratelimit/memory"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// refusals are faults of one server: it is gone, hangs, or answers that it does not write.
var refusals = []struct {
	name       string
	hurt, heal func(*redistest.Server)
}{
	{"killed", (*redistest.Server).Kill, (*redistest.Server).Restart},
	{"stopped", (*redistest.Server).Stop, (*redistest.Server).Cont},
	{"without replicas", set("min-replicas-to-write", "1"), set("min-replicas-to-write", "0")},
	{"full", set("maxmemory", "1"), set("maxmemory", "0")},
}

// set returns what changes a setting of a server.
func set(name, value string) func(*redistest.Server) {
	return func(s *redistest.Server) { _, _ = s.Do("config", "set", name, value) }
}

// A part is an engine behind failover, and a subject of each server.
type part struct {
	*testing.T
	*failover.Limiter
	ctx      context.Context
	subjects []string
}

// A master of a cluster that fails takes the decisions about its subjects from Redis, and no
// others. If all masters fail, the circuit opens. TestFaults shows what the only server does.
func TestOneMasterFails(t *testing.T) {
	for i, fault := range refusals {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no")
			for n := range cluster.Masters {
				if n > 0 {
					testenv.Long(t, "each fault meets each master")
				}
				hurt := (i + n) % len(cluster.Masters)
				master := cluster.Masters[hurt]
				p := newPart(t, cluster, n%2 == i/2)
				fault.hurt(master)
				for range 12 { // which can open the circuit, as nothing shows that the others decide
					p.ask(p.subjects[hurt])
				}
				p.await("the circuit closes when a probe has found the others", func() bool { return !p.Open() })
				p.await(fmt.Sprintf("Redis decides about the others, while master %d is %s", hurt, fault.name), func() bool {
					return p.spared(hurt)
				})
				for _, other := range cluster.Masters {
					if other != master {
						fault.hurt(other)
					}
				}
				p.await("the circuit opens when all masters fail", func() bool { p.decided(); return p.Open() })
				for _, m := range cluster.Masters {
					fault.heal(m)
				}
				p.await("the circuit closes, and each master decides", p.decided)
				must(t, p.Close())
			}
		})
	}
}

// newPart returns an engine that has found the masters of a cluster, each with a subject.
func newPart(t *testing.T, cluster *redistest.Cluster, local bool) *part {
	t.Helper()
	client := redis.NewClusterClient(&redis.ClusterOptions{
		Addrs: cluster.Addrs(), DialTimeout: timeout, ReadTimeout: timeout, DialerRetries: 1, MaxRetries: -1,
	})
	t.Cleanup(func() { client.Close() })
	prefix := fmt.Sprint("part", time.Now().UnixNano())
	p := &part{T: t, ctx: untilTheEnd(t), subjects: make([]string, len(cluster.Masters))}
	opts := failover.Options{Budget: 2 * time.Second, Backoff: 10 * time.Millisecond} // longer than the client waits
	var err error
	if local {
		opts.Local, err = memory.New(memory.Options{})
		must(t, err)
	}
	p.Limiter, err = failover.New(newEngine(t, client, redislimit.Options{Prefix: prefix}), opts)
	must(t, err)
	for i := 0; slices.Contains(p.subjects, ""); i++ {
		subject := fmt.Sprint("subject ", i)
		p.await("a decision", func() bool { return p.ask(subject) })
		for k, m := range cluster.Masters {
			keys, err := m.Do("keys", prefix+"*:"+subject)
			must(t, err)
			if len(keys) > 0 {
				p.subjects[k] = subject
			}
		}
	}
	p.await("usage that is not merged", func() bool { return p.Stats().Pending == 0 })
	return p
}

// ask takes a unit for a subject, and reports whether Redis decided.
func (p *part) ask(subject string) bool {
	before := p.Stats().Fallbacks
	_, _ = p.Take(p.Context(), subject, lasting(1<<30), 1)
	return p.Stats().Fallbacks == before
}

// decided asks for all subjects, and reports whether Redis decided about each.
func (p *part) decided() bool {
	all := true
	for _, subject := range p.subjects {
		all = p.ask(subject) && all
	}
	return all
}

// spared reports whether Redis decides about all subjects but that of a master that is hurt. A
// busy machine may miss some, and many at times: await asks again then.
func (p *part) spared(hurt int) bool {
	misses := 0
	for n := range 50 {
		p.ask(p.subjects[hurt])
		for other, subject := range p.subjects {
			if other != hurt && !p.ask(subject) {
				misses++
			}
		}
		if misses > 2+n/10 {
			p.Logf("master %d is hurt: Redis has not decided %d of %d requests of other masters", hurt, misses, 2*n+2)
			return false
		}
	}
	return true
}

func (p *part) await(what string, holds func() bool) {
	p.Helper()
	await(p.ctx, p.T, what, holds)
}
