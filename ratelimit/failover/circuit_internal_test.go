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

// The breaker against rules that are written out, with calls that overlap, also with the
// opening and the closing of the circuit: what began before counts for nothing after it.
func TestBreakerAgreesWithAModelOfOverlaps(t *testing.T) {
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 1))
		limits := circuit{consecutive: 1 + random.IntN(20), recent: 1 + random.IntN(40), minBackoff: time.Second, maxBackoff: time.Second}
		var b breaker
		b.state.Store(&limits)
		type call struct {
			began int // the step
			epoch uint64
		}
		var under []call
		var share uint64
		row, owed := 0, 0
		counted, changed, open := -1, -1, false // the steps of the last failure that was counted, and of the last change
		for step := range 2000 {
			if len(under) == 0 || len(under) < 128 && random.IntN(3) > 0 {
				under = append(under, call{step, b.current().epoch})
				continue
			}
			i := random.IntN(len(under))
			ended := under[i]
			under[i] = under[len(under)-1]
			under = under[:len(under)-1]
			failed := random.IntN(100) < (int(seed)+step/500*50)%100
			opens := false
			switch {
			case open || ended.began < changed:
			case failed && ended.began <= counted:
				owed = min(owed+1, 64)
			case failed:
				counted, row, share = step, row+1, share<<1|1
				opens = row >= limits.consecutive || bits.OnesCount64(share) >= limits.recent
			case owed > 0:
				owed, row = owed-1, 0
			default:
				share, row = share<<1, 0
			}
			got := false
			if failed {
				got = b.failed(ended.epoch, nil, errTimeout)
			} else {
				b.succeeded(ended.epoch)
			}
			if got != opens {
				t.Fatalf("seed %d, step %d: the circuit opens: %v, want %v", seed, step, got, opens)
			}
			if closes := open && random.IntN(10) == 0; opens || closes {
				if closes {
					b.probed(nil)
				}
				open, changed, share, row, owed = opens, step, 0, 0, 0
			}
			if clean := b.current().clean(); clean != (share == 0 && owed == 0) {
				t.Fatalf("seed %d, step %d: the circuit remembers no failure: %v, want %v", seed, step, clean, !clean)
			}
		}
	}
}
