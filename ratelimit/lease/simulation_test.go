package lease

import (
	"context"
	"fmt"
	"math/bits"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A simulation is some processes with clocks of their own in front of one engine. Its time
// passes only between steps, and what runs in the background runs when a step says so.
type simulation struct {
	*rand.Rand
	now       time.Time
	engine    *counted
	processes []*process
	frozen    bool // the clocks of the processes stand still: the control
}

type process struct {
	*Limiter
	rate       float64 // of its monotonic clock
	mono, wall float64
	pending    []func()
}

func newSimulation(seed uint64, processes int, frozen bool) *simulation {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 1)), now: time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC), frozen: frozen}
	s.engine = newCounted(func() time.Time { return s.now })
	for range processes {
		p := &process{rate: 0.91 + 0.18*s.Float64()}
		p.Limiter = newLimiter(s.engine, func() reading { return reading{int64(p.mono), int64(p.wall)} })
		p.background = func(f func()) { p.pending = append(p.pending, f) }
		s.processes = append(s.processes, p)
	}
	return s
}

// pass lets time pass. Now and then a process is suspended, or its wall clock is set.
func (s *simulation) pass(d time.Duration) {
	s.now = s.now.Add(d)
	for _, p := range s.processes {
		if s.frozen {
			continue
		}
		passed := float64(d) * p.rate
		switch s.IntN(50) {
		case 0:
			p.wall += passed // suspended: the monotonic clock stands still
			continue
		case 1:
			p.wall += 1e10 * (s.Float64() - 0.5) // set
		case 2:
			p.mono += passed // and the wall clock was set back
			continue
		}
		p.mono += passed
		p.wall += passed
	}
}

// run makes requests for some windows, and returns how many were admitted in each.
func (s *simulation) run(t *testing.T, plan *ratelimit.Plan, windows int, demand float64) (admitted map[int64]int64) {
	admitted = map[int64]int64{}
	limit := plan.Quotas()[0].Limit
	pause := time.Duration(float64(time.Minute) / (float64(limit) * demand))
	end := s.now.Add(time.Duration(windows) * time.Minute)
	ticked := s.now
	for s.now.Before(end) {
		p := s.processes[s.IntN(len(s.processes))]
		for range 1 + s.IntN(5) {
			d, err := p.Take(context.Background(), "ann", plan, 1)
			if err != nil {
				t.Fatal(err)
			}
			if d.Allowed() {
				admitted[s.now.Unix()/60]++
			}
			s.pass(time.Duration(s.Float64() * 2 * float64(pause)))
			if s.IntN(1000) == 0 {
				s.pass(time.Duration(s.IntN(3000)) * time.Millisecond)
			}
		}
		for _, p := range s.processes {
			if n := len(p.pending); n > 0 && s.IntN(3) == 0 {
				f := p.pending[0]
				p.pending = p.pending[1:]
				f()
			}
			if s.now.Sub(ticked) > time.Second {
				p.sweep(false)
			}
		}
		if s.now.Sub(ticked) > time.Second {
			ticked = s.now
		}
	}
	return admitted
}

func TestNeverMoreThanTheLimit(t *testing.T) {
	over := int64(0)
	for _, frozen := range []bool{false, true} {
		for _, processes := range []int{1, 3, 10} {
			for _, limit := range []int64{10, 60, 1000, 20_000} {
				for _, demand := range []float64{0.95, 1.5, 3} {
					name := fmt.Sprintf("frozen=%t %d processes, %d a minute, %g", frozen, processes, limit, demand)
					s := newSimulation(uint64(limit)+uint64(processes), processes, frozen)
					plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(limit), ratelimit.PerDay(1000*limit))
					all := s.run(t, plan, 5, demand)
					var local, asked uint64
					for _, p := range s.processes {
						local, asked = local+p.Stats().Local, asked+p.Stats().Asked
					}
					for w, n := range all {
						if n > limit {
							over += n - limit
							if !frozen {
								t.Errorf("%s: %d were admitted in the minute %d", name, n, w)
							}
						}
					}
					t.Log(name, all, local, asked)
				}
			}
		}
	}
	if over == 0 {
		t.Error("clocks that stand still admit no more than the limit, want more: the test sees nothing")
	}
}

// Processes whose traffic is even do not take units that others need: at 0.95 of the limit no
// request is denied, and the engine is rarely asked.
func TestNothingIsDeniedBelowTheLimit(t *testing.T) {
	for _, processes := range []int{3, 10} {
		for _, q := range []ratelimit.Quota{{Limit: 60, Window: 2 * time.Second}, {Limit: 1000, Window: 2 * time.Second}, {Limit: 20_000, Window: 5 * time.Second}, ratelimit.PerMinute(1000), ratelimit.PerMinute(20_000)} {
			for _, pattern := range []string{"even", "skewed", "rotating", "slowly"} {
				r := newRig(t)
				all := []*Limiter{r.Limiter}
				for len(all) < processes {
					all = append(all, r.process())
				}
				plan := ratelimit.MustPlan("even", ratelimit.Penalty{}, q)
				const windows = 3
				requests := int(q.Limit) * 95 / 100 * windows
				denied, swept := 0, start
				for k := range requests {
					now := start.Add(windows * q.Window * time.Duration(k) / time.Duration(requests)).Truncate(10 * time.Millisecond)
					r.clock.Set(now)
					p := k % processes
					switch pattern {
					case "skewed":
						p = min(bits.TrailingZeros(uint(k+1)), processes-1)
					case "rotating":
						p = int(now.Sub(start)/(300*time.Millisecond)) % processes
					case "slowly":
						p = int(now.Sub(start)/(1500*time.Millisecond)) % processes
					}
					if d, err := all[p].Take(ctx, "ann", plan, 1); err != nil || !d.Allowed() {
						denied++
					}
					if now.Sub(swept) >= time.Second/2 {
						swept = now
						for _, p := range all {
							p.sweep(false)
						}
					}
				}
				asked := int(float64(r.fake.calls.Load()) / (windows * q.Window.Seconds()))
				if denied > 0 || asked > 150 {
					t.Errorf("%d processes, %+v, %s: %d of %d requests were denied, and %d questions asked in a second; want 0 and at most 150", processes, q, pattern, denied, requests, asked)
				}
			}
		}
	}
}
