package failover

import (
	"strings"
	"testing"
	"time"
)

var began = time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC)

func newCircuit() *circuit {
	return &circuit{consecutive: 5, recent: 8, minBackoff: time.Second, maxBackoff: 10 * time.Second}
}

// report enters outcomes, F for a failure, and returns after how many of them
// the circuit opened; 0: it did not.
func (c *circuit) reportAll(outcomes string, now time.Time) int {
	for i, o := range outcomes {
		if c.report(o == 'F', c.epoch, now) {
			return i + 1
		}
	}
	return 0
}

func TestCircuitOpens(t *testing.T) {
	for _, test := range []struct {
		name     string
		outcomes string
		want     int // the outcome that opens it
	}{
		{"nothing but successes", "SSSSSSSSSSSSSSSS", 0},
		{"four in a row", "FFFFS", 0},
		{"five in a row", "FFFFF", 5},
		{"five in a row after others", "SFSFSFFFFF", 10},
		{"four, and four in another row", "FFFFSFFF", 0},
		{"eight in all", "FFFFSFFFF", 9},
		{"eight in 64", strings.Repeat("FSSSSSSSS", 7) + "F", 64},
		{"eight in 65", strings.Repeat("FSSSSSSSS", 6) + "FSSSSSSSSSF", 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := newCircuit()
			if got := c.reportAll(test.outcomes, began); got != test.want {
				t.Errorf("%s opened the circuit after %d, want %d (0: never)", test.outcomes, got, test.want)
			}
			if c.open != (test.want > 0) {
				t.Errorf("the circuit is open: %v", c.open)
			}
		})
	}
}

func TestCircuitIgnoresThePast(t *testing.T) {
	c := newCircuit()
	old := c.epoch
	c.reportAll("FFFFF", began)
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
	c.reportAll("FFFF", began)
	c.report(false, old, began)
	if c.reportAll("F", began) == 0 {
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
	c.reportAll("FFFFF", now)
	wait("when it opens", 1)
	for _, want := range []time.Duration{2, 4, 8, 10, 10} {
		c.probed(true, now)
		wait("after a probe that failed", want)
	}
	now = now.Add(time.Hour)
	c.probed(false, now)
	c.reportAll("FFFFF", now.Add(9*time.Second))
	wait("when it opens again soon", 10)
	c.probed(false, now)
	c.reportAll("FFFFF", now.Add(10*time.Second))
	wait("when it opens again later", 1)
	c.probed(false, now)
	c.reportAll("FFFFF", now)
	wait("when it opens again at once", 2)
}

func TestBreakerWait(t *testing.T) {
	var b breaker
	b.init(&Options{ConsecutiveFailures: 1, Backoff: 100})
	b.failed(b.look(), nil, errTimeout)
	shortest, longest := time.Hour, time.Duration(0)
	for range 10_000 {
		w := b.backoff()
		shortest, longest = min(shortest, w), max(longest, w)
	}
	if shortest != 51 || longest != 100 {
		t.Errorf("waits are from %d to %d, want all from over the half to the whole of 100", shortest, longest)
	}
}
