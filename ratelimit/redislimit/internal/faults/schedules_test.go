//go:build unix

package faults

import (
	"flag"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/redistest"
)

var (
	schedules = flag.Duration("schedules", 0, "how long the server is killed and stopped at random behind each arrangement; 0: not at all")
	seed      = flag.Uint64("seed", 1, "what the schedules begin with")
)

// The server is killed and started again, or stopped and continued, at random
// times. In the end every arrangement has kept its promises, and the books balance:
// Redis has counted too much for at most as many requests as had no answer.
func TestSchedules(t *testing.T) {
	if *schedules == 0 {
		t.Skip("random schedules are run with -schedules 2m")
	}
	for _, a := range arrangements {
		if !a.failover {
			continue
		}
		t.Run(a.name, func(t *testing.T) {
			var server *redistest.Server
			r := newRun(t, scenario{stage: func(t *testing.T) stage {
				server = redistest.Start(t, "--appendonly", "yes", "--appendfsync", "no")
				return stage{client: newClient(t, server.Addr), beside: clientOf(t, server)}
			}}, a)
			r.load.start(r.ctx)
			defer r.load.stop()
			r.await("the healthy phase", func() bool { return r.load.ended[healthy].Load() >= healthyRequests })
			r.begin(fault)
			kills, stops := r.disturb(server, rand.New(rand.NewPCG(*seed, 0)))
			r.begin(recovery)
			o := r.recover()
			s := r.guard.Stats()
			t.Logf("seed %d: %d kills, %d stops, the circuit opened %d times\n%v", *seed, kills, stops, s.Opened, o.String())
			if s.Lost != 0 {
				t.Errorf("the journal lost %d, want 0", s.Lost)
			}
			if excess := o.excess(); excess > int64(s.Failures) {
				t.Errorf("Redis has counted %d too much, want at most one for each of %d calls that failed", excess, s.Failures)
			}
		})
	}
}

// disturb kills and stops the server at random until the time is up, and leaves
// it running.
func (r *run) disturb(server *redistest.Server, random *rand.Rand) (kills, stops int) {
	for end := time.Now().Add(*schedules); time.Now().Before(end); {
		r.pause(random, 3*time.Second)
		if random.IntN(2) == 0 {
			server.Kill()
			r.pause(random, 2*time.Second)
			server.Restart()
			kills++
		} else {
			server.Stop()
			r.pause(random, 2*time.Second)
			server.Cont()
			stops++
		}
	}
	return kills, stops
}

// pause waits for a random time: half of the pauses are shorter than a tenth of
// the longest.
func (r *run) pause(random *rand.Rand, longest time.Duration) {
	if random.IntN(2) == 0 {
		longest /= 10
	}
	select {
	case <-time.After(time.Duration(random.Int64N(int64(longest)))):
	case <-r.ctx.Done():
		r.t.Fatal("the test has no time left")
	}
}
