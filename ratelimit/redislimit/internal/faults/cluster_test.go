//go:build unix

package faults

import (
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
)

func oneStopped(t *testing.T) stage {
	return oneOfThree(t, (*redistest.Server).Stop, (*redistest.Server).Cont)
}

func oneKilled(t *testing.T) stage {
	return oneOfThree(t, (*redistest.Server).Kill, (*redistest.Server).Restart)
}

// oneOfThree hurts the master of a cluster that has the last of the limited subjects, until
// the other masters have marked it as failed.
func oneOfThree(t *testing.T, hurt, heal func(*redistest.Server)) stage {
	cluster := redistest.StartCluster(t, "--cluster-require-full-coverage", "no", "--appendonly", "yes", "--appendfsync", "no")
	opts := &redis.ClusterOptions{DialTimeout: timeout, ReadTimeout: timeout, DialerRetries: 1, MaxRetries: -1}
	beside := map[*redistest.Server]*redis.Client{}
	for _, m := range cluster.Masters {
		opts.Addrs = append(opts.Addrs, m.Addr)
		beside[m] = clientOf(t, m)
	}
	client := redis.NewClusterClient(opts)
	t.Cleanup(func() { client.Close() })
	var away *redistest.Server
	return stage{
		client: client, beside: clientOfCluster(t, cluster),
		hurt: func(r *run) {
			found := map[string]*redistest.Server{}
			for _, s := range r.load.subjects {
				r.await("usage of "+s.name, func() bool {
					for m, c := range beside {
						for _, key := range c.Keys(r.ctx, "*").Val() {
							_, subject, _ := strings.Cut(key, ":")
							found[subject] = m
						}
					}
					return found[s.name] != nil
				})
			}
			away = found[limited[len(limited)-1].name]
			for _, s := range r.load.subjects {
				s.away = found[s.name] == away
			}
			cluster.Notice()
			hurt(away)
			r.await("a warning", func() bool { return r.log.has("a master of the cluster does not answer", away.Addr) })
			for _, s := range r.load.subjects {
				s.decided.Store(healthy)
			}
		},
		felt: func(r *run) bool {
			for m, c := range beside {
				if m != away && strings.Contains(c.ClusterInfo(r.ctx).Val(), "cluster_slots_fail:0\r") {
					return false
				}
			}
			return r.atOnce() >= waitingRequests && r.load.decided()
		},
		heal: func(r *run) {
			heal(away)
			r.await("a line that the master answers", func() bool {
				return r.log.has("requests for the subjects of the master are decided again", away.Addr)
			})
		},
	}
}

// atOnce returns how many requests Redis did not decide, and did not delay. With a
// local engine, Redis is not asked about a subject with usage that is not merged.
func (r *run) atOnce() int64 {
	if !r.arrangement.local {
		return r.primary.partly.Load()
	}
	s := r.guard.Stats()
	return int64(s.Fallbacks - s.Timeouts)
}

// A book is the log of an engine.
type book struct{ testcheck.Log }

// has reports whether a line about a master has a text.
func (b *book) has(text, master string) bool {
	for line := range strings.Lines(b.String()) {
		if strings.Contains(line, text) && strings.Contains(line, "master="+master) {
			return true
		}
	}
	return false
}
