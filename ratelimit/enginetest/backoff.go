package enginetest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// testBackoff has clients that double their pauses, or wait for Decay between their
// requests, while a quota is exhausted for a long time.
func testBackoff(e *engineTest) {
	r := rand.New(rand.NewPCG(1, 2))
	day := func(p ratelimit.Penalty) *ratelimit.Plan {
		return ratelimit.MustPlan("exhausted", p, ratelimit.PerMinute(60), ratelimit.Quota{Limit: 1, Window: fixedwindow.MaxLength})
	}
	double := func(first, longest time.Duration) func() time.Duration {
		pause := first / 2
		return func() time.Duration {
			pause = min(2*pause, longest)
			return pause
		}
	}
	standard := ratelimit.DefaultPenalty()
	e.neverBanned(day(standard), "doubling from 1s", double(time.Second, time.Hour))
	e.neverBanned(day(standard), "doubling from 1s to 60s", double(time.Second, time.Minute))
	e.neverBanned(day(standard), "doubling from 1ms", double(2*time.Millisecond, time.Hour))
	e.neverBanned(day(standard), "asking every 10s", func() time.Duration { return 10 * time.Second })
	for range 40 {
		p := penalty()
		p.Decay = time.Duration(1+r.IntN(120)) * time.Second
		p.Grace = time.Duration(1+r.IntN(5000)) * time.Millisecond
		first := time.Duration(1 + r.Int64N(10_000_000_000))
		p.Strikes = 2 + max(int(math.Ceil(math.Log2(float64(p.Decay)/float64(max(p.Grace, first))))), 0)
		longest := p.Decay + time.Duration(r.IntN(3600))*time.Second
		e.neverBanned(day(p), fmt.Sprintf("doubling from %v to %v with %+v", first, longest, p), double(first, longest))
		p.Strikes = 1 + r.IntN(3)
		e.neverBanned(day(p), fmt.Sprintf("waiting at least Decay with %+v", p), func() time.Duration {
			return p.Decay + time.Duration(r.Int64N(2_000_000_000))
		})
	}
}

// testWarning has clients with any strikes send as many further requests as are safe, at
// any pace, and then one more than that in quick succession.
func testWarning(e *engineTest) {
	r := rand.New(rand.NewPCG(3, 4))
	p := strict(penalty())
	pause := func() { e.advance(time.Duration(r.IntN(2)*r.IntN(15_000)) * time.Millisecond) }
	for i := range 100 {
		e.now = start.Truncate(24 * time.Hour).Add(24 * time.Hour)
		e.engine.Set(e.now)
		client := fmt.Sprint("client ", i)
		e.takeN(client, p, 1)
		d := e.takeN(client, p, 1)
		for range r.IntN(8) {
			if pause(); d.StrikesLeft > 0 {
				d = e.takeN(client, p, 1)
			}
		}
		for range d.StrikesLeft {
			pause()
			e.want("no more requests than are safe", e.takeN(client, p, 1), limited, 0)
		}
		e.advance(12 * time.Second) // the grace is over, and a strike has decayed
		d = e.takeN(client, p, 1)
		for range d.StrikesLeft {
			e.want("no more than are safe in quick succession", e.takeN(client, p, 1), limited, 0)
		}
		d = e.takeN(client, p, 1)
		e.want("one more than that", d, banned, 0)
		e.wantStruck("one more than that", d, true)
	}
}

// neverBanned sends 60 requests of one client, with pauses between them, to an
// exhausted quota.
func (e *engineTest) neverBanned(p *ratelimit.Plan, client string, pause func() time.Duration) {
	e.Helper()
	e.takeN(client, p, 1)
	for i := range 60 {
		if d := e.takeN(client, p, 1); d.Outcome != limited {
			e.Fatalf("a client %s is %v at request %d, want limited", client, d.Outcome, i+1)
		}
		e.advance(pause())
	}
}
