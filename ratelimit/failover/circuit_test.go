package failover_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/failover"
)

func TestCircuitOpensAndCloses(t *testing.T) {
	var mu sync.Mutex
	var changes []error
	opts := failover.Options{ConsecutiveFailures: 3, Backoff: time.Second, OnChange: func(failure error) {
		mu.Lock()
		defer mu.Unlock()
		changes = append(changes, failure)
	}}
	run(t, alone, opts, func(r *rig) {
		r.try("a", daily)
		r.shared.set(down)
		for range 2 {
			r.try("a", daily)
			r.wantOpen("two failures", false)
		}
		_, _ = r.Peek(ctx, "a", daily)
		r.wantOpen("three failures, one of them of a peek", true)

		calls := r.shared.calls.Load()
		for range 1000 {
			r.try("a", daily)
		}
		if n := r.shared.calls.Load() - calls; n != 0 {
			r.Errorf("while the circuit was open the primary was called %d times, want 0", n)
		}
		time.Sleep(15 * time.Second) // probes after at most 1, 3, 7, 15 seconds
		synctest.Wait()
		if n := r.shared.calls.Load() - calls; n < 4*16 || n > 6*16 {
			r.Errorf("in 15 seconds there were %d calls, want those of 4 to 6 probes", n)
		}

		// Without any traffic.
		r.shared.set(nil)
		time.Sleep(32 * time.Second)
		synctest.Wait()
		r.wantOpen("the primary is back", false)
		if d := r.take("a", daily); d.Remaining() != 998 {
			r.Errorf("the primary does not decide: %d remaining, want 998", d.Remaining())
		}

		mu.Lock()
		defer mu.Unlock()
		last := len(changes) - 1
		if last < 4 || changes[last] != nil || slices.ContainsFunc(changes[:last], func(err error) bool { return !errors.Is(err, errDown) }) {
			r.Errorf("OnChange was told of %v, want the failures, and that the primary answers", changes)
		}
		if s := r.Stats(); s.Opened != 1 {
			r.Errorf("the circuit opened %d times, want 1", s.Opened)
		}
	})
}

func TestCircuitOpensByShare(t *testing.T) {
	run(t, alone, failover.Options{}, func(r *rig) {
		calls := 0
		r.shared.set(func(context.Context) error {
			if calls++; calls%2 == 0 {
				return errDown
			}
			return nil
		})
		for range 63 {
			r.try("a", daily)
		}
		r.wantOpen("31 of 63 calls failed", false)
		r.try("a", daily)
		r.wantOpen("32 of 64 calls failed", true)
	})
}

// If a part of the primary says that it is away, the others may answer: each request of
// its subjects is decided by the local engine, and the circuit stays closed for the rest.
func TestPartialOutageLeavesCircuitClosed(t *testing.T) {
	for _, mode := range []fallback{withLocal, alone} {
		run(t, mode, failover.Options{}, func(r *rig) {
			r.losePart()
			const n = 1000
			for range n {
				d, err := r.Take(ctx, "a", daily, 1)
				switch {
				case mode == withLocal && (err != nil || !d.Allowed()):
					r.Fatalf("%v: %v, %v, want that the local engine admits", mode, d.Outcome, err)
				case mode == alone && !errors.Is(err, ratelimit.ErrUnavailable):
					r.Fatalf("%v: %v, want an error that wraps ErrUnavailable", mode, err)
				}
			}
			r.wantOpen("requests of one part failed", false)
			if s := r.Stats(); s.Failures != n || s.Fallbacks != n || s.Opened != 0 {
				r.Errorf("%v: %+v, want %d failures and fallbacks", mode, s, n)
			}
		})
	}
}

func TestProbe(t *testing.T) {
	run(t, alone, failover.Options{}, func(r *rig) {
		r.lose()
		r.shared.set(slow(40 * time.Millisecond))
		calls := r.shared.calls.Load()
		for r.shared.calls.Load() == calls {
			time.Sleep(time.Millisecond)
		}
		r.wantOpen("while the primary is probed", true)
		for range 10 {
			r.try("a", daily)
		}
		if n := r.shared.calls.Load() - calls; n != 16 {
			r.Errorf("while it was probed the primary was called %d times, want once for each subject of a probe: requests do not wait for it", n)
		}
		time.Sleep(40 * time.Millisecond)
		synctest.Wait()
		r.wantOpen("after a probe within the budget", false)
		probed := 0
		for i := range 16 {
			switch n := used(r, r.shared.engine, fmt.Sprint("failover:probe:", i), daily); n {
			case "1/24h0m0s":
				probed++
			case "0/24h0m0s": // another one had been decided
			default:
				r.Errorf("a probe used %s, want the one unit that is documented", n)
			}
		}
		if probed == 0 {
			r.Error("the subjects of a probe are not the documented ones")
		}

		r.lose()
		r.shared.set(slow(60 * time.Millisecond))
		time.Sleep(time.Minute)
		if r.Stats().Opened != 2 || !r.Open() {
			r.Error("a primary that takes longer than the budget closed the circuit")
		}
		var probes atomic.Int64
		r.shared.set(func(context.Context) error {
			if probes.Add(1)%16 == 5 {
				return nil
			}
			return errDown
		})
		time.Sleep(6 * time.Second)
		r.wantOpen("one server of several decides", false)

		r.lose()
		r.shared.set(func(context.Context) error { return ratelimit.ErrInvalid }) // which is an answer
		time.Sleep(6 * time.Second)
		r.wantOpen("after a probe that was refused", false)
	})
}

// OnChange is called immediately, also while the merging rests.
func TestOnChangeIsPrompt(t *testing.T) {
	var told time.Time
	opts := failover.Options{Backoff: time.Minute, OnChange: func(error) { told = time.Now() }}
	run(t, withLocal, opts, func(r *rig) {
		r.shared.set(down)
		r.take("a", daily)
		time.Sleep(time.Second)
		synctest.Wait()
		opened := time.Now()
		r.lose()
		synctest.Wait()
		if !told.Equal(opened) {
			r.Errorf("the circuit opened at %v, OnChange was called at %v", opened, told)
		}
	})
}

// A primary that is slower than the budget, but merges each subject in time, opens the
// circuit. OnChange and the first probe do not wait until all subjects are merged.
func TestOpeningEndsAMerge(t *testing.T) {
	var told []time.Time
	opts := failover.Options{OnChange: func(error) { told = append(told, time.Now()) }}
	run(t, withLocal, opts, func(r *rig) {
		r.shared.set(slow(900 * time.Millisecond))
		var wg sync.WaitGroup
		for i := range 50 { // at once: one failure, and 50 subjects to merge
			wg.Go(func() { r.take(fmt.Sprint(i), daily) })
		}
		wg.Wait()
		time.Sleep(100 * time.Millisecond) // the merge begins
		for !r.Open() {
			r.take("another", daily)
		}
		opened := time.Now()
		time.Sleep(time.Minute)
		synctest.Wait()
		if late := told[0].Sub(opened); late > time.Second {
			r.Errorf("OnChange was called %v after the circuit opened, want a second at most: that of one merge", late)
		}
		if late := told[1].Sub(opened); late > 1150*time.Millisecond { // its budget included
			r.Errorf("the first probe came %v after the circuit opened, want the wait and one merge at most", late)
		}
	})
}

// A stall of the primary that is twice as long as the budget fails all calls
// that are under way, and does not open the circuit.
func TestStallLeavesTheCircuitClosed(t *testing.T) {
	oneProcessor(t)
	run(t, withLocal, failover.Options{}, func(r *rig) {
		var stall atomic.Int64 // when it ends, Unix nanoseconds
		r.shared.set(func(ctx context.Context) error {
			return slow(time.Until(time.Unix(0, stall.Load())))(ctx)
		})
		end := time.Now().Add(5 * time.Second)
		var callers sync.WaitGroup
		for range 64 {
			callers.Go(func() {
				for time.Now().Before(end) {
					r.take("a", daily)
					time.Sleep(time.Millisecond)
				}
			})
		}
		for range 4 {
			time.Sleep(time.Second)
			stall.Store(time.Now().Add(100 * time.Millisecond).UnixNano())
		}
		callers.Wait()
		s := r.Stats()
		if s.Timeouts < 4*64 {
			t.Errorf("%d calls timed out: the test has tested nothing", s.Timeouts)
		}
		if s.Opened != 0 {
			t.Errorf("four stalls of 100ms opened the circuit %d times, want 0", s.Opened)
		}
	})
}

// Without OnChange the log has one line when an outage begins, and one when it ends. A
// service with a wrong password for Redis would otherwise limit alone, or not at all, and
// nobody would know.
func TestOutageIsLogged(t *testing.T) {
	for _, mode := range []fallback{withLocal, alone} {
		var log bytes.Buffer
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		run(t, mode, failover.Options{}, func(r *rig) {
			r.shared.set(down)
			for range 10 {
				_, _ = r.Take(ctx, "a", daily, 1)
			}
			time.Sleep(time.Minute) // with probes
			r.shared.set(nil)
			time.Sleep(time.Minute)
			synctest.Wait()
		})
		slog.SetDefault(before)
		lines := strings.Split(strings.TrimSpace(log.String()), "\n")
		if len(lines) != 2 ||
			!strings.HasSuffix(lines[0], `level=WARN msg="failover: the primary fails" error="connection refused"`) ||
			!strings.HasSuffix(lines[1], `level=INFO msg="failover: the primary answers again"`) {
			t.Errorf("%v: the log has\n%s\nwant a warning when the outage begins and a line when it ends", mode, &log)
		}
	}
}

// Requests that the journal has no room for are admitted and counted, and the first one of
// each outage is logged.
func TestFullJournalIsLogged(t *testing.T) {
	var log bytes.Buffer
	before := slog.Default()
	slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
	defer slog.SetDefault(before)
	opts := failover.Options{JournalSize: 10, OnChange: func(error) {}}
	run(t, withLocal, opts, func(r *rig) {
		for _, lose := range []func(){r.lose, r.lose, r.losePart, r.losePart} {
			lose()
			for i := range 30 {
				if d := r.take(fmt.Sprint(i), daily); !d.Allowed() {
					r.Errorf("a request without room in the journal is %v", d.Outcome)
				}
			}
			r.regain()
		}
		if n := r.Stats().Lost; n < 80 || n > 100 {
			r.Errorf("%d requests were lost, want 120 but for those of the 10 subjects that are held", n)
		}
	})
	if n := strings.Count(log.String(), `msg="failover: the journal is full; the primary will not count all requests that are admitted without it; raise Options.JournalSize" JournalSize=10`); n != 4 {
		t.Errorf("the log has %d warnings, want one for each of 4 outages:\n%s", n, &log)
	}
}

// A full journal has room for a subject when nothing is left of another one: its windows have
// ended, or all was given back.
func TestFullJournalMakesRoom(t *testing.T) {
	minute := ratelimit.MustPlan("minute", ratelimit.Penalty{}, ratelimit.PerMinute(5))
	run(t, withLocal, failover.Options{JournalSize: 2}, func(r *rig) {
		r.lose() // with a subject whose day does not end
		r.take("a", minute)
		time.Sleep(time.Minute)
		d := r.take("b", minute)
		r.adjust("b", &d, 0)
		r.take("c", minute)
		if s := r.Stats(); s.Pending != 2 || s.Lost != 0 {
			r.Errorf("%d subjects are in the journal and %d charges were lost, want two and none", s.Pending, s.Lost)
		}
	})
}
