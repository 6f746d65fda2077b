package lease

import (
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
	processes []*process
	frozen    bool // the clocks of the processes stand still: the control
}

type process struct {
	*Limiter
	rate       float64 // of its monotonic clock
	mono, wall float64
	pending    []func()
}

func newSimulation(seed uint64, frozen bool) *simulation {
	s := &simulation{Rand: rand.New(rand.NewPCG(seed, 1)), now: start, frozen: frozen}
	engine := newCounted(func() time.Time { return s.now })
	for range []int{1, 3, 10}[seed%3] {
		p := &process{rate: 0.91 + 0.18*s.Float64()}
		p.Limiter = newLimiter(engine, func() reading { return reading{time.Duration(p.mono), time.Duration(p.wall)} })
		p.background = func(f func()) { p.pending = append(p.pending, f) }
		s.processes = append(s.processes, p)
	}
	return s
}

// pass lets time pass. Now and then a process is suspended, or its wall clock is set.
func (s *simulation) pass(d time.Duration) {
	s.now = s.now.Add(d)
	for _, p := range s.processes {
		passed := float64(d) * p.rate
		event := s.IntN(50)
		if s.frozen {
			continue
		}
		if event > 0 { // otherwise it was suspended: the monotonic clock stood still
			p.mono += passed
		}
		switch event {
		case 1:
			p.wall += 1e10 * (s.Float64() - 0.5)
		case 2:
			p.wall -= passed
		}
		p.wall += passed
	}
}

// run makes requests in five windows, and returns how many more than the limit were admitted.
func (s *simulation) run(t *testing.T, limit int64, demand float64) (over int64) {
	plan := ratelimit.MustPlan("free", ratelimit.Penalty{}, ratelimit.PerMinute(limit), ratelimit.PerDay(1000*limit))
	admitted := map[int64]int64{}
	pause := float64(time.Minute) / (float64(limit) * demand)
	for swept := s.now; s.now.Before(start.Add(5 * time.Minute)); {
		p := s.processes[s.IntN(len(s.processes))]
		for range 1 + s.IntN(5) {
			d, err := p.Take(ctx, "ann", plan, 1)
			must(t, err)
			if minute := s.now.Unix() / 60; d.Allowed() {
				if admitted[minute]++; admitted[minute] > limit {
					over++
				}
			}
			s.pass(time.Duration(s.Float64() * 2 * pause))
			if s.IntN(1000) == 0 {
				s.pass(time.Duration(s.IntN(3000)) * time.Millisecond)
			}
		}
		sweeps := s.now.Sub(swept) > time.Second
		for _, p := range s.processes {
			if len(p.pending) > 0 && s.IntN(3) == 0 {
				f := p.pending[0]
				p.pending = p.pending[1:]
				f()
			}
			if sweeps {
				p.sweep(false)
				swept = s.now
			}
		}
	}
	return over
}

func TestNeverMoreThanTheLimit(t *testing.T) {
	for seed := range uint64(36) {
		limit := []int64{10, 60, 1000, 20_000}[seed/3%4]
		demand := []float64{0.95, 1.5, 3}[seed/12]
		if over := newSimulation(seed, false).run(t, limit, demand); over > 0 {
			t.Errorf("seed %d: %d more than %d a minute were admitted", seed, over, limit)
		}
	}
	seen := int64(0)
	for seed := range uint64(36) {
		seen += newSimulation(seed, true).run(t, 20_000, 1.5)
	}
	if seen == 0 {
		t.Error("clocks that stand still admit no more than the limit, want more: the test sees nothing")
	}
}

// Processes whose traffic is even do not take units that others need: at 0.95 of the limit no
// request is denied, and the engine is rarely asked.
func TestNothingIsDeniedBelowTheLimit(t *testing.T) {
	const windows = 3
	quotas := []ratelimit.Quota{{Limit: 60, Window: 2 * time.Second}, {Limit: 1000, Window: 2 * time.Second}, {Limit: 20_000, Window: 5 * time.Second}, ratelimit.PerMinute(1000), ratelimit.PerMinute(20_000)}
	// Which process gets the k-th request, so long after the start.
	rng := rand.New(rand.NewPCG(1, 1))
	patterns := map[string]func(k int, at time.Duration) int{
		"random":   func(_ int, _ time.Duration) int { return rng.IntN(2) * rng.IntN(10) },
		"even":     func(k int, _ time.Duration) int { return k },
		"skewed":   func(k int, _ time.Duration) int { return min(bits.TrailingZeros(uint(k+1)), 9) },
		"rotating": func(_ int, at time.Duration) int { return int(at / (300 * time.Millisecond)) },
		"slowly":   func(_ int, at time.Duration) int { return int(at / (1500 * time.Millisecond)) },
	}
	for name, pattern := range patterns {
		for i := range 2 * len(quotas) {
			r, q, all := newRig(t), quotas[i/2], []*Limiter{}
			for range []int{3, 10}[i%2] {
				all = append(all, r.process())
			}
			plan := ratelimit.MustPlan("even", ratelimit.Penalty{}, q)
			requests := int(q.Limit) * 95 / 100 * windows
			denied, swept := 0, time.Duration(0)
			for k := range requests {
				at := (windows * q.Window * time.Duration(k) / time.Duration(requests)).Truncate(10 * time.Millisecond)
				r.clock.Set(start.Add(at))
				if d, err := all[pattern(k, at)%len(all)].Take(ctx, "ann", plan, 1); err != nil || !d.Allowed() {
					denied++
				}
				if at-swept >= time.Second/2 {
					swept = at
					for _, p := range all {
						p.sweep(false)
					}
				}
			}
			asked := int(float64(r.fake.calls.Load()) / (windows * q.Window.Seconds()))
			if denied > 0 || asked > 150 {
				t.Errorf("%d processes, %+v, %s: %d of %d requests were denied, and %d questions asked in a second; want 0 and at most 150", len(all), q, name, denied, requests, asked)
			}
		}
	}
}
