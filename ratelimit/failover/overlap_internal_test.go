package failover

import (
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"
)

// A failure counts only if its call began after the last failure that counted
// was known.
func TestOverlappingFailuresCountAsOne(t *testing.T) {
	c := newCircuit() // opens after 5 in a row, or 8 of 64
	for stall := range 4 {
		began := c.epoch
		for range 64 {
			if c.report(true, began, time.Time{}) {
				t.Fatalf("stall %d opened the circuit, want 5 that follow each other", stall+1)
			}
		}
	}
	if !c.report(true, c.epoch, time.Time{}) {
		t.Error("the fifth failure that overlaps with none of the others did not open the circuit")
	}
}

// Stalls that thousands of successes lie between do not add up.
func TestStallsApart(t *testing.T) {
	c := newCircuit()
	for stall := range 100 {
		for began := c.epoch; c.overlaps < 63; {
			if c.report(true, began, time.Time{}) {
				t.Fatalf("stall %d opened the circuit", stall+1)
			}
		}
		for range 200 {
			c.report(false, c.epoch, time.Time{})
		}
	}
	under := c.epoch
	c.report(true, c.epoch, time.Time{})
	for range 64 {
		c.report(false, c.epoch, time.Time{})
	}
	c.report(true, under, time.Time{})
	if c.clean() {
		t.Error("a failure that overlapped is not set off against a success, because it came late")
	}
	c.report(false, c.epoch, time.Time{})
	if !c.clean() {
		t.Errorf("after 200 successes the circuit is not clean: %+v", c)
	}
}

// The share is that of all calls, whether or not they overlap: of 32 calls that
// are always under way a fixed part fails.
func TestShareOfOverlappingCalls(t *testing.T) {
	for _, test := range []struct {
		percent int // of the calls that fail
		opens   bool
	}{{0, false}, {5, false}, {15, false}, {70, true}, {95, true}} {
		c := &circuit{consecutive: 64, recent: 32, minBackoff: time.Second, maxBackoff: time.Second}
		random := rand.New(rand.NewPCG(1, uint64(test.percent)))
		var under [32]uint64
		opened := false
		for range 20_000 {
			i := random.IntN(len(under))
			opened = c.report(random.IntN(100) < test.percent, under[i], time.Time{}) || opened
			under[i] = c.epoch
		}
		if opened != test.opens {
			t.Errorf("%d%% of 20000 overlapping calls failed, and the limit is the half of 64: the circuit opened: %v, want %v", test.percent, opened, test.opens)
		}
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
			if len(under) == 0 || len(under) < 16 && random.IntN(2) == 0 {
				under = append(under, call{step, c.epoch})
				continue
			}
			i := random.IntN(len(under))
			ended := under[i]
			under[i] = under[len(under)-1]
			under = under[:len(under)-1]
			failed := random.IntN(100) < int(seed%100)
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
