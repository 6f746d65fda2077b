//go:build unix

package redislimit_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/redistest"
	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/redislimit"
)

// neighbours returns n subjects whose keys are in one slot, and the slot.
func neighbours(t *testing.T, l *redislimit.Limiter, c *redis.ClusterClient, n int) (subjects []string, slot int) {
	t.Helper()
	for i := 0; len(subjects) < n; i++ {
		subject := fmt.Sprint("subject ", i)
		s, err := c.ClusterKeySlot(ctx, redislimit.Key(l, subject)).Result()
		must(t, err)
		if len(subjects) == 0 {
			slot = int(s)
		}
		if int(s) == slot {
			subjects = append(subjects, subject)
		}
	}
	return subjects, slot
}

// within returns a context that a test which works does not see the end of.
func within(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// owner returns which of the masters has the slot.
func owner(t *testing.T, cluster *redistest.Cluster, slot int) int {
	t.Helper()
	for i, master := range cluster.Masters {
		shards, err := clientOf(t, master).ClusterShards(ctx).Result()
		must(t, err)
		id, err := clientOf(t, master).ClusterMyID(ctx).Result()
		must(t, err)
		for _, shard := range shards {
			mine := slices.ContainsFunc(shard.Nodes, func(n redis.Node) bool { return n.ID == id })
			if mine && slices.ContainsFunc(shard.Slots, func(s redis.SlotRange) bool { return int(s.Start) <= slot && slot <= int(s.End) }) {
				return i
			}
		}
	}
	t.Fatalf("slot %d has no master", slot)
	return 0
}

// While a slot moves, some subjects are still at one master and some at the other.
func testHalfMovedSlot(t *testing.T, cluster *redistest.Cluster) {
	c := clientOfCluster(t, cluster)
	l := newLimiter(t, c)
	plan := lasting(10)
	subjects, slot := neighbours(t, l, c, 12)
	for _, subject := range subjects[:8] {
		_, err := l.Take(ctx, subject, plan, 1)
		must(t, err)
	}
	for _, subject := range subjects[:4] {
		must(t, l.Ban(ctx, subject, time.Hour, ""))
	}
	from := owner(t, cluster, slot)
	m := cluster.Migrate(slot, from, (from+1)%3)
	m.Keys(5)
	if err := redislimit.TakeAll(l, plan)(subjects); err != nil {
		t.Fatalf("subjects of a slot that moves, in one batch: %v", err)
	}
	if bans, err := l.Bans(within(t)); err != nil || len(bans) != 4 {
		t.Errorf("Bans while a slot moves: %d, %v, want 4", len(bans), err)
	}
	for _, subject := range subjects[4:8] {
		if n := used(t, l, subject, 10); n != 2 {
			t.Errorf("Peek while a slot moves: %d units are used, want 2", n)
		}
	}
	// What needs two keys waits for the slot.
	var waiting sync.WaitGroup
	var done atomic.Int64
	for _, subject := range subjects {
		waiting.Go(func() {
			if err := l.Ban(within(t), subject, time.Hour, ""); err != nil {
				t.Errorf("Ban while a slot moves: %v", err)
			}
			if _, err := l.Unban(within(t), subject); err != nil {
				t.Errorf("Unban while a slot moves: %v", err)
			}
			d, err := l.Lease(within(t), subject, plan, 1, engine.Terms{More: 1})
			if err != nil || d.Cost != 2 {
				t.Errorf("Lease while a slot moves: %v, %d units", err, d.Cost)
			}
			if _, err := l.Lease(within(t), subject, plan, 0, engine.Terms{Back: &d}); err != nil {
				t.Errorf("Lease while a slot moves: %v", err)
			}
			d, err = l.Hold("id", time.Hour).Take(within(t), subject, plan, 1)
			if err != nil || !d.Allowed() {
				t.Errorf("a held Take while a slot moves: %v, %v", err, d.Outcome)
			}
			if err := l.Adjust(within(t), subject, &d, 0, "id"); err != nil {
				t.Errorf("settling it while a slot moves: %v", err)
			}
			done.Add(1)
		})
	}
	if err := l.Ban(within(t), "another", time.Hour, ""); err != nil { // the slot moves until Finish
		t.Errorf("Ban of a subject in another slot: %v", err)
	}
	m.Finish()
	waiting.Wait()
	for _, subject := range subjects[4:8] { // they were never banned when they asked
		if n := used(t, l, subject, 10); n != 2 {
			t.Errorf("%s was charged %d times, want twice", subject, n)
		}
	}
}

// What has expired of holds is given back, also where the slot moves: a master refuses calls of a
// script about a key that the script has deleted.
func testExpiredHoldsWhileASlotMoves(t *testing.T, cluster *redistest.Cluster) {
	c := clientOfCluster(t, cluster)
	l := newLimiter(t, c)
	subjects, slot := neighbours(t, l, c, 6)
	for _, subject := range subjects {
		must(t, second(l.Hold("id", time.Hour).Take(ctx, subject, lasting(9), 5)))
		holds := redislimit.HoldsKey(l, subject)
		must(t, c.ZAdd(ctx, holds, redis.Z{Score: 1, Member: c.ZRange(ctx, holds, 0, 0).Val()[0]}).Err()) // it has expired
	}
	redislimit.Die(l)
	from := owner(t, cluster, slot)
	m := cluster.Migrate(slot, from, (from+1)%3)
	m.Keys(1)
	_, err := redislimit.PeekAll(l, lasting(9), subjects...)
	m.Finish()
	for _, subject := range subjects {
		if n := used(t, l, subject, 9); err != nil || n != 0 {
			t.Errorf("%s has used %d units (%v), want that its hold was given back", subject, n, err)
		}
	}
}

// A request that would start a ban does not wait for the slot, which may stay half
// moved: it is limited, and the ban starts once the slot has moved.
func testABanWaitsForItsSlotAndItsRequestDoesNot(t *testing.T, cluster *redistest.Cluster) {
	c := clientOfCluster(t, cluster)
	l := newLimiter(t, c)
	penalty := ratelimit.Penalty{Strikes: 2, Decay: time.Hour, Ban: time.Hour, Growth: 1, Max: time.Hour, Forgive: time.Hour}
	plan := ratelimit.MustPlan("", penalty, ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	subjects, slot := neighbours(t, l, c, 6)
	take := func(subject string) ratelimit.Decision {
		t.Helper()
		d, err := l.Take(within(t), subject, plan, 1)
		must(t, err)
		return d
	}
	for _, subject := range subjects {
		for range 3 { // one is admitted, two are strikes
			take(subject)
		}
	}
	must(t, l.Ban(ctx, subjects[5], time.Hour, "")) // now there is an index, whose one entry is so old that it goes
	index, _, _ := strings.Cut(redislimit.Key(l, subjects[5]), "}")
	must(t, c.ZAdd(ctx, index+"}", redis.Z{Score: 1, Member: c.ZRange(ctx, index+"}", 0, 0).Val()[0]}).Err())
	from := owner(t, cluster, slot)
	m := cluster.Migrate(slot, from, (from+1)%3)
	if d := take(subjects[4]); d.Outcome != ratelimit.Banned {
		t.Errorf("before a key has moved: %v, want banned", d.Outcome)
	}
	m.Keys(3)
	limited := 0
	for _, subject := range subjects[:4] {
		switch d := take(subject); {
		case d.Outcome == ratelimit.Limited && d.StrikesLeft == 0 && !d.Struck:
			limited++
		case d.Outcome != ratelimit.Banned:
			t.Errorf("while the slot moves: %v with %d strikes left and Struck %v, want limited with 0 and false", d.Outcome, d.StrikesLeft, d.Struck)
		}
	}
	if limited == 0 {
		t.Error("every ban started, want one whose subject is not where the index is")
	}
	m.Finish()
	started := 0
	for _, subject := range subjects[:5] {
		if d := take(subject); d.Outcome != ratelimit.Banned {
			t.Errorf("after the slot has moved: %v, want banned", d.Outcome)
		} else if d.Struck {
			started++
		}
	}
	if started != limited {
		t.Errorf("%d bans started after the slot had moved, want %d: those that were due", started, limited)
	}
	if bans, err := l.Bans(ctx); err != nil || len(bans) != 5 {
		t.Errorf("%d bans are listed, %v, want 5", len(bans), err)
	}
}

// A slot moves around under load: no call fails, nothing is charged twice or for
// nothing, and no subject gets more than its limit.
func testSlotsMoveUnderLoad(t *testing.T, cluster *redistest.Cluster) {
	testenv.Long(t, "moves slots of a cluster")
	const limit, callers, rounds = 20, 16, 6
	c := clientOfCluster(t, cluster)
	l := newLimiter(t, c)
	plan := lasting(limit)
	subjects, slot := neighbours(t, l, c, 40)
	load, end := context.WithCancel(ctx)
	defer end()
	var admitted, asked atomic.Int64
	var wg sync.WaitGroup
	for caller := range callers {
		wg.Go(func() {
			for i := caller; load.Err() == nil; i++ {
				d, err := l.Take(within(t), subjects[i%len(subjects)], plan, 1)
				if err != nil {
					t.Errorf("Take while a slot moves: %v", err)
					return
				}
				asked.Add(1)
				if d.Allowed() {
					admitted.Add(1)
				}
			}
		})
	}
	wg.Go(func() {
		for i := 0; load.Err() == nil; i++ {
			subject := fmt.Sprint("banned ", subjects[i%10]) // a slot of its own for some
			if i%2 == 0 {
				subject = subjects[len(subjects)-1]
			}
			if err := l.Ban(within(t), subject, time.Hour, ""); err != nil {
				t.Errorf("Ban while a slot moves: %v", err)
			}
			if banned, err := l.Unban(within(t), subject); err != nil || !banned {
				t.Errorf("Unban while a slot moves: %v, %v", banned, err)
			}
		}
	})
	from := owner(t, cluster, slot)
	for round := range rounds {
		m := cluster.Migrate(slot, (from+round)%3, (from+round+1)%3)
		for moved := 1; moved > 0; {
			before := asked.Load()
			eventually(t, "requests while a slot moves", func() bool { return asked.Load() >= before+20 })
			moved = m.Keys(8)
		}
		m.Finish()
	}
	end()
	wg.Wait()
	var charged int64
	for _, subject := range subjects {
		n := used(t, l, subject, limit)
		if n > limit {
			t.Errorf("%s was charged %d times, over its limit of %d", subject, n, limit)
		}
		charged += n
	}
	t.Logf("%d of %d requests were admitted", admitted.Load(), asked.Load())
	if charged != admitted.Load() {
		t.Errorf("%d requests were admitted and %d charged", admitted.Load(), charged)
	}
}
