//go:build unix

package redislimit_test

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// The interpreter and the numbers of a real server, with a clock that can be set.
func TestConformanceOfServer(t *testing.T) {
	enginetest.Run(t, few(32, onServer(redistest.Start(t))), enginetest.Gaps{})
}

// histories is set to 50000 for the long run of random histories.
var histories = flag.Int("histories", 1, "random histories on a server in TestHistoriesOfServer")

func TestHistoriesOfServer(t *testing.T) {
	enginetest.Histories(t, onServer(redistest.Start(t)), *histories, 400)
}

func onServer(s *redistest.Server) func(*testing.T, time.Time) enginetest.Engine {
	return func(t *testing.T, start time.Time) enginetest.Engine {
		c := redis.NewClient(&redis.Options{Addr: s.Addr, ReadTimeout: time.Minute})
		t.Cleanup(func() { c.Close() })
		clock := newScriptClock(t, start)
		c.AddHook(clock)
		l := newLimiter(t, c)
		t.Cleanup(func() { wantExpiries(t, s, redislimit.Prefix(l)) })
		return enginetest.Engine{Limiter: l, Set: clock.Set, Remembers: true}
	}
}

// wantExpiries fails the test if a key would stay in Redis for ever, or not as long as it must.
func wantExpiries(t *testing.T, s *redistest.Server, prefix string) {
	c := clientOf(t, s)
	for _, key := range c.Keys(ctx, prefix+"{*").Val() {
		tag, name, _ := strings.Cut(strings.TrimPrefix(key, prefix), "}")
		at, err := c.ZScore(ctx, tag+"}expiries", key).Result()
		if err != nil {
			t.Errorf("%q does not expire: %v", key, err)
		}
		last := int64(0)
		switch {
		case name == "": // the index of bans
			last = int64(c.ZRevRangeWithScores(ctx, key, 0, 0).Val()[0].Score) + 3600
		case name[0] == ':': // a subject
			last = redislimit.Outlasts(t, c.Get(ctx, key).Val()) + afterlife
		case name[0] == '+': // what is held
			for _, hold := range c.ZRangeWithScores(ctx, key, 0, -1).Val() {
				if hold.Member.(string)[0] != 'x' { // it has not ended
					last = max(last, int64(hold.Score)+afterlife)
				}
			}
		default: // a note, or a mark, which is empty
			if note := c.Get(ctx, key).Val(); note != "" {
				last = int64(binary.BigEndian.Uint32([]byte(note[4:]))) + afterlife
			}
		}
		if int64(at) < last {
			t.Errorf("%q expires %d seconds too early", key, last-int64(at))
		}
	}
}

// A server as it is, with its own clock.
func TestConformanceOfServersClock(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	enginetest.Run(t, func(t *testing.T, start time.Time) enginetest.Engine {
		return enginetest.Engine{Limiter: newLimiter(t, c)}
	}, enginetest.Gaps{})
}

// All tests of a cluster share one.
func TestCluster(t *testing.T) {
	t.Parallel()
	cluster := redistest.StartCluster(t)
	for _, test := range []struct {
		name string
		run  func(*testing.T, *redistest.Cluster)
	}{
		{"conformance", testConformanceOfCluster},
		{"conformance of holds", testConformanceOfHoldsOfCluster},
		{"subjects of any bytes", testSubjectsOfAnyBytes},
		{"half moved slot", testHalfMovedSlot},
		{"expired holds while a slot moves", testExpiredHoldsWhileASlotMoves},
		{"a ban waits for its slot and its request does not", testABanWaitsForItsSlotAndItsRequestDoesNot},
		{"slot stays half moved", testSlotStaysHalfMoved},
		{"slots move under load", testSlotsMoveUnderLoad},
		{"access list while a slot moves", testAccessListWhileASlotMoves},
		{"access list", func(t *testing.T, cluster *redistest.Cluster) {
			testAccessList(t, documentedUser(t), cluster.Masters, func() redis.UniversalClient {
				return redis.NewClusterClient(&redis.ClusterOptions{
					Addrs: cluster.Addrs()[:1], Username: "gatehouse", Password: "secret", MaxRedirects: 3,
				})
			})
		}},
		{"eviction is logged", testEvictionOfClusterIsLogged},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, cluster) })
	}
}

func testConformanceOfCluster(t *testing.T, cluster *redistest.Cluster) {
	enginetest.Run(t, few(4, onCluster(cluster)), enginetest.Gaps{InOrder: true})
}

func testConformanceOfHoldsOfCluster(t *testing.T, cluster *redistest.Cluster) {
	enginetest.Run(t, few(4, holding(onCluster(cluster))), enginetest.Gaps{InOrder: true})
}

func onCluster(cluster *redistest.Cluster) func(*testing.T, time.Time) enginetest.Engine {
	return func(t *testing.T, start time.Time) enginetest.Engine {
		c := clientOfCluster(t, cluster)
		clock := newScriptClock(t, start)
		c.AddHook(clock)
		return enginetest.Engine{Limiter: newLimiter(t, c), Set: clock.Set, Remembers: true}
	}
}

// A server in cluster mode refuses subjects of several slots in one call. A client
// of one server finds out, and goes on without.
func TestOneServerInClusterMode(t *testing.T) {
	t.Parallel()
	c := clientOf(t, redistest.Start(t, "--cluster-enabled", "yes"))
	must(t, c.ClusterAddSlotsRange(ctx, 0, 16383).Err())
	l := newLimiter(t, c)
	eventually(t, "a decision", func() bool { return second(l.Peek(ctx, "ready", lasting(1))) == nil })
	plan := lasting(10)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			for range 10 {
				if d, err := l.Take(ctx, fmt.Sprint(i), plan, 1); err != nil || !d.Allowed() {
					t.Errorf("%v, %v", d.Outcome, err)
				}
			}
		})
	}
	wg.Wait()
	for i := range 50 {
		if n := used(t, l, fmt.Sprint(i), 10); n != 10 {
			t.Errorf("subject %d was charged %d times, want 10", i, n)
		}
	}
	charges := []ratelimit.Charge{{Subject: "a", Plan: plan, Cost: 1}, {Subject: "b", Plan: plan, Cost: 1}}
	decisions := make([]ratelimit.Decision, 2)
	if err := newLimiter(t, c).TakeAll(ctx, charges, decisions); err != nil || decisions[1].Remaining() != 9 {
		t.Errorf("subjects of two slots: %+v, %v, want that both are charged", decisions, err)
	}
	if err := ratelimit.TakeAll(ctx, l.Hold("id", time.Hour), charges, decisions); err != nil || redislimit.Held(l) != 2 {
		t.Errorf("%d charges of two slots are held (%v), want both", redislimit.Held(l), err)
	}
}

// What a key takes, as the documentation says: of a subject, once it is limited, of an id, and of
// holds. Every key expires.
func TestBytes(t *testing.T) {
	s := redistest.Start(t)
	c := clientOf(t, s)
	l, err := redislimit.New(c, redislimit.Options{})
	must(t, err)
	subject := strings.Repeat("s", 45)
	plan := ratelimit.MustPlan("", ratelimit.DefaultPenalty(), ratelimit.PerDay(2), ratelimit.PerMonth(1000))
	bytes := func(what string, most int64, pattern string) {
		t.Helper()
		for _, key := range c.Keys(ctx, pattern).Val() {
			if n := c.MemoryUsage(ctx, key).Val(); n == 0 || n > most {
				t.Errorf("%s takes %d bytes, want at most %d", what, n, most)
			}
			if c.TTL(ctx, key).Val() <= 0 {
				t.Errorf("%s stays for ever", what)
			}
		}
	}
	d, err := l.Take(ctx, subject, plan, 1)
	must(t, err)
	bytes("a subject", 195, "*")
	must(t, l.Adjust(ctx, subject, &d, 3, "id"))
	bytes("an id", 190, "*!*")
	_, err = l.Take(ctx, subject, plan, 1)
	must(t, err)
	bytes("a limited subject", 225, "*:*")
	for i := range int64(40) {
		must(t, second(l.Hold(fmt.Sprintf("%026d", i), time.Hour).Take(ctx, subject, lasting(100), 1)))
		bytes("what is held of a subject", 1100+220*i, "*}+*")
	}
}

// They are logged too, once a minute.
func TestForeignValues(t *testing.T) {
	c := clientOf(t, redistest.Start(t))
	testForeignValues(t, c)
	var log testcheck.Log
	l := loggingLimiter(t, c, &log)
	key := redislimit.Key(l, "a")
	must(t, c.RPush(ctx, key, "x").Err())
	for range 2 {
		if _, err := l.Take(ctx, "a", lasting(1), 1); !errors.Is(err, partial.ErrOutage) {
			t.Errorf("Take of a list: %v, want an error of this subject alone", err)
		}
	}
	if text := log.String(); strings.Count(text, "level=WARN") != 1 || !strings.Contains(text, key) {
		t.Errorf("the log has %q, want one warning that names %q", text, key)
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
