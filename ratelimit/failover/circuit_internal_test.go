package failover

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

var began = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func newCircuit() *circuit {
	return &circuit{consecutive: 5, recent: 8, minBackoff: time.Second, maxBackoff: 10 * time.Second}
}

// fail reports as many failures as open the circuit.
func (c *circuit) fail(now time.Time) {
	for range c.consecutive {
		c.report(true, c.epoch, now)
	}
}

func TestCircuitIgnoresThePast(t *testing.T) {
	c := newCircuit()
	old := c.epoch
	c.fail(began)
	for range 10 {
		if c.report(true, old, began) {
			t.Fatal("a failure opened a circuit that is open")
		}
	}
	c.probed(false, began)
	for range 10 {
		if c.report(true, old, began) {
			t.Fatal("failures of calls from before the outage opened the circuit after it")
		}
	}
	if !c.clean() {
		t.Error("the circuit remembers failures from before the outage")
	}

	var b breaker
	b.init(&Options{ConsecutiveFailures: 2, Backoff: time.Second})
	before := b.current().epoch
	for range 2 {
		b.failed(b.current().epoch, nil, errTimeout)
	}
	b.probed(nil)
	b.failed(b.current().epoch, nil, errTimeout)
	b.succeeded(before)
	if !b.failed(b.current().epoch, nil, errTimeout) {
		t.Error("a success from before the outage ended the row of failures after it")
	}
}

func TestCircuitWaits(t *testing.T) {
	c := newCircuit()
	wait := func(promise string, want time.Duration) {
		t.Helper()
		if c.wait != want*time.Second {
			t.Errorf("%s: the wait is %v, want %v", promise, c.wait, want*time.Second)
		}
	}
	now := began
	c.fail(now)
	wait("when it opens", 1)
	for _, want := range []time.Duration{2, 4, 8, 10, 10} {
		c.probed(true, now)
		wait("after a probe that failed", want)
	}
	now = now.Add(time.Hour)
	c.probed(false, now)
	c.fail(now.Add(9 * time.Second))
	wait("when it opens again soon", 10)
	c.probed(false, now)
	c.fail(now.Add(10 * time.Second))
	wait("when it opens again later", 1)
	c.probed(false, now)
	c.fail(now)
	wait("when it opens again immediately", 2)
}

func TestBreakerWait(t *testing.T) {
	var b breaker
	b.init(&Options{ConsecutiveFailures: 1, Backoff: 100})
	b.failed(b.current().epoch, nil, errTimeout)
	shortest, longest := time.Hour, time.Duration(0)
	for range 10_000 {
		w := b.backoff()
		shortest, longest = min(shortest, w), max(longest, w)
	}
	if shortest != 51 || longest != 100 {
		t.Errorf("waits are from %d to %d, want all from over the half to the whole of 100", shortest, longest)
	}
}

// The circuit against rules that are written out, with calls that overlap.
func TestCircuitAgreesWithAModelOfOverlaps(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		c := &circuit{consecutive: 1 + random.IntN(20), recent: 1 + random.IntN(40), minBackoff: time.Second, maxBackoff: time.Second}
		type call struct {
			began int // the step
			epoch uint64
		}
		var under []call
		var share uint64
		row, owed, counted := 0, 0, -1 // the step in which the last failure was counted
		for step := range 2000 {
			if len(under) == 0 || len(under) < 128 && random.IntN(3) > 0 {
				under = append(under, call{step, c.epoch})
				continue
			}
			i := random.IntN(len(under))
			ended := under[i]
			under[i] = under[len(under)-1]
			under = under[:len(under)-1]
			failed := random.IntN(100) < (int(seed)+step/500*50)%100
			opens := false
			switch {
			case failed && ended.began <= counted:
				owed = min(owed+1, 64)
			case failed:
				counted, row, share = step, row+1, share<<1|1
				opens = row >= c.consecutive || bits.OnesCount64(share) >= c.recent
			case owed > 0:
				owed, row = owed-1, 0
			default:
				share, row = share<<1, 0
			}
			if got := c.report(failed, ended.epoch, began); got != opens {
				t.Fatalf("seed %d, step %d: the circuit opens: %v, want %v", seed, step, got, opens)
			}
			if opens {
				c.probed(false, began)
				under, share, row, owed, counted = nil, 0, 0, 0, step
			}
		}
	}
}
