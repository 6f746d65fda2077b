package observe_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/reference/internal/observe"
)

// clock is a clock that a test sets.
type clock struct{ time.Time }

func (c *clock) now() time.Time { return c.Time }

func newActivity() (*observe.Activity, *clock) {
	c := &clock{time.Date(2026, time.May, 4, 12, 0, 0, 0, time.UTC)}
	return observe.NewActivity(c.now), c
}

func count(c *observe.Activity, n int, subject string, network bool, o ratelimit.Outcome) {
	for range n {
		c.Count(subject, network, o)
	}
}

const (
	owner   = false
	network = true
)

func TestSnapshot(t *testing.T) {
	c, clock := newActivity()
	count(c, 3, "owner:ada", owner, ratelimit.Allowed)
	count(c, 2, "owner:ada", owner, ratelimit.Limited)
	count(c, 1, "owner:ada", owner, ratelimit.Banned)
	count(c, 9, "owner:bob", owner, ratelimit.Allowed)
	count(c, 6, "owner:cyd", owner, ratelimit.Banned)
	count(c, 4, "network:192.0.2.1/32", network, ratelimit.Limited)
	count(c, 2, "network:192.0.2.1/32", network, ratelimit.Suspended)
	count(c, 4, "owner:eve", owner, 0)
	count(c, 1, "owner:eve", owner, ratelimit.Suspended+1) // no Outcome
	clock.Time = clock.Add(time.Second)
	count(c, 1, "owner:bob", owner, ratelimit.Allowed)
	count(c, 1, "owner:dan", owner, ratelimit.Allowed)

	want := observe.ActivitySnapshot{
		Decisions: observe.Decisions{Allowed: 14, Limited: 6, Banned: 7, Suspended: 2, Undecided: 5},
		PerSecond: 6.4, // the present second is not over
		Owners: []observe.Use{
			{Subject: "owner:bob", Allowed: 10}, {Subject: "owner:ada", Allowed: 3, Denied: 3}, {Subject: "owner:cyd", Denied: 6},
		},
		Networks: []observe.Use{{Subject: "network:192.0.2.1/32", Denied: 6}},
	}
	if diff := cmp.Diff(want, c.Snapshot(3)); diff != "" {
		t.Errorf("Snapshot(3), the busiest first, on a tie by name (-want +got):\n%s", diff)
	}
}

func TestCountsAreForgottenAfterAMinute(t *testing.T) {
	c, clock := newActivity()
	begin := clock.Time
	for i := range 3 * observe.ActivitySeconds {
		clock.Time = begin.Add(time.Duration(i) * time.Second)
		count(c, 2, "owner:ada", owner, ratelimit.Allowed)
		count(c, 1, "network:192.0.2.1/32", network, ratelimit.Limited)
	}
	want := observe.ActivitySnapshot{
		Decisions: observe.Decisions{Allowed: 120, Limited: 60}, PerSecond: 3,
		Owners: []observe.Use{{Subject: "owner:ada", Allowed: 120}}, Networks: []observe.Use{{Subject: "network:192.0.2.1/32", Denied: 60}},
	}
	if diff := cmp.Diff(want, c.Snapshot(20)); diff != "" {
		t.Errorf("after three minutes (-want +got):\n%s", diff)
	}
	clock.Time = clock.Add(59 * time.Second)
	want = observe.ActivitySnapshot{
		Decisions: observe.Decisions{Allowed: 2, Limited: 1},
		Owners:    []observe.Use{{Subject: "owner:ada", Allowed: 2}}, Networks: []observe.Use{{Subject: "network:192.0.2.1/32", Denied: 1}},
	}
	if diff := cmp.Diff(want, c.Snapshot(20)); diff != "" {
		t.Errorf("59 seconds later (-want +got):\n%s", diff)
	}
	clock.Time = clock.Add(time.Second)
	if got := c.Snapshot(20); got.Allowed != 0 || len(got.Owners) != 0 {
		t.Errorf("60 seconds later: %+v, want nothing", got)
	}
}

// What a clock that runs ahead has counted is not shown as past, and does not stop
// the counting.
func TestAClockThatStepsBack(t *testing.T) {
	c, clock := newActivity()
	count(c, 1, "owner:ada", owner, ratelimit.Allowed)
	for _, step := range []time.Duration{10 * time.Second, time.Hour} {
		clock.Time = clock.Add(step)
		count(c, 7, "owner:ada", owner, ratelimit.Allowed)
		clock.Time = clock.Add(-step)
		if got := c.Snapshot(20).Allowed; got > 1 {
			t.Errorf("after a step back by %v: %d decisions, want not those of the future", step, got)
		}
		count(c, 2, "owner:ada", owner, ratelimit.Allowed)
		if got := c.Snapshot(20).Allowed; got < 2 || got > 3 {
			t.Errorf("after a step back by %v and 2 decisions: %d", step, got)
		}
		clock.Time = clock.Add(-time.Hour) // out of the window of the next step
	}
}

// A flood of networks must not hide the busy ones, nor any owner.
func TestBusySubjectsAreFoundInAFlood(t *testing.T) {
	c, clock := newActivity()
	const seconds, flood = 5, 20_000
	for s := range seconds {
		for i := range flood {
			c.Count(fmt.Sprintf("network:2001:db8:%x:%x::/64", s, i), network, ratelimit.Allowed)
			if i%20 == 0 {
				c.Count("network:192.0.2.1/32", network, ratelimit.Limited)
			}
		}
		count(c, 3, "owner:ada", owner, ratelimit.Allowed)
		clock.Time = clock.Add(time.Second)
	}
	got := c.Snapshot(20)
	const busy = seconds * flood / 20
	if first := got.Networks[0]; first.Subject != "network:192.0.2.1/32" || first.Denied > busy || first.Denied < busy*4/5 || first.Allowed != 0 {
		t.Errorf("the busiest network is %+v, want 192.0.2.1/32 with nearly %d denials", first, busy)
	}
	if len(got.Networks) != 20 {
		t.Errorf("%d networks, want 20", len(got.Networks))
	}
	if diff := cmp.Diff([]observe.Use{{Subject: "owner:ada", Allowed: 3 * seconds}}, got.Owners); diff != "" {
		t.Errorf("owners (-want +got):\n%s", diff)
	}
	if got.Allowed != seconds*(flood+3) || got.Limited != busy {
		t.Errorf("%d allowed and %d limited, want exactly %d and %d", got.Allowed, got.Limited, seconds*(flood+3), busy)
	}
}

func TestConcurrentCountsAreExact(t *testing.T) {
	c, _ := newActivity()
	const clients, each = 8, 2000
	var wg sync.WaitGroup
	for i := range clients {
		wg.Go(func() {
			for j := range each {
				c.Count("owner:ada", owner, ratelimit.Allowed)
				c.Count(fmt.Sprint("network:", i), network, ratelimit.Limited)
				if j%100 == 0 {
					c.Snapshot(20)
				}
			}
		})
	}
	wg.Wait()
	got := c.Snapshot(20)
	if got.Allowed != clients*each || got.Limited != clients*each || got.Owners[0].Allowed != clients*each || len(got.Networks) != clients {
		t.Errorf("%d allowed, %d limited, owners %v, %d networks; want %d of each, and %d networks",
			got.Allowed, got.Limited, got.Owners, len(got.Networks), clients*each, clients)
	}
}

func TestCountDoesNotAllocate(t *testing.T) {
	c, clock := newActivity()
	names := make([]string, 1000)
	for i := range names {
		names[i] = fmt.Sprint("network:", i)
	}
	i := 0
	if n := testing.AllocsPerRun(10_000, func() {
		clock.Time = clock.Add(time.Millisecond)
		c.Count(names[i%len(names)], network, ratelimit.Allowed)
		i++
	}); n != 0 {
		t.Errorf("Count allocates %v times, want never", n)
	}
}

func BenchmarkActivityCount(b *testing.B) {
	for _, bb := range []struct {
		name     string
		subjects int
	}{{"one owner", 1}, {"100 owners", 100}, {"100000 owners", 100_000}} {
		names := make([]string, bb.subjects)
		for i := range names {
			names[i] = fmt.Sprintf("owner:%d", i)
		}
		b.Run(bb.name, func(b *testing.B) {
			b.ReportAllocs()
			c := observe.NewActivity(time.Now)
			for i := range b.N {
				c.Count(names[i%len(names)], owner, ratelimit.Allowed)
			}
		})
	}
}
