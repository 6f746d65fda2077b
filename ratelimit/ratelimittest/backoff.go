package ratelimittest

import (
	"fmt"
	"math"
	"math/rand/v2"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// testDecay holds that strikes are forgotten one by one.
func testDecay(b *bench) {
	p := penalty()
	p.Decay, p.Grace = 20*time.Second, 0
	plan := strict(p)
	b.take(plan)
	for _, step := range []struct {
		after time.Duration
		left  int
	}{
		{0, 2}, {0, 1},
		{19 * time.Second, 0}, // the first two still count
		{time.Second, 0},      // one is forgotten, one is new
		{60 * time.Second, 2}, // all are forgotten
		{19 * time.Second, 1},
	} {
		b.advance(step.after)
		if d := b.take(plan); d.Outcome != limited || d.StrikesLeft != step.left {
			b.Fatalf("a strike %v after the last: got %v with %d strikes left, want limited with %d",
				step.after, d.Outcome, d.StrikesLeft, step.left)
		}
	}
	peeker, ok := b.engine.Limiter.(ratelimit.Peeker)
	if !ok {
		return
	}
	for range 3 {
		d, err := peeker.Peek(b.Context(), "a", plan)
		if err != nil {
			b.Fatal(err)
		}
		if d.StrikesLeft < 1 {
			b.Errorf("a peek sees %d strikes left, want 1 and more as they decay", d.StrikesLeft)
		}
		b.advance(20 * time.Second)
	}
}

// testBackoff holds that a client is never banned that doubles its pauses, or
// that waits for Decay between its requests, when a quota is exhausted for long.
func testBackoff(b *bench) {
	r := rand.New(rand.NewPCG(1, 2))
	day := func(p ratelimit.Penalty) *ratelimit.Plan {
		return ratelimit.MustPlan("exhausted", p, ratelimit.PerMinute(60), ratelimit.Quota{Limit: 1, Window: ratelimit.MaxWindow})
	}
	double := func(first, longest time.Duration) func() time.Duration {
		pause := first / 2
		return func() time.Duration {
			pause = min(2*pause, longest)
			return pause
		}
	}
	standard := ratelimit.DefaultPenalty()
	b.neverBanned(day(standard), "doubling from 1s", double(time.Second, time.Hour))
	b.neverBanned(day(standard), "doubling from 1s to 60s", double(time.Second, time.Minute))
	b.neverBanned(day(standard), "doubling from 1ms", double(2*time.Millisecond, time.Hour))
	b.neverBanned(day(standard), "asking every 10s", func() time.Duration { return 10 * time.Second })
	for range 40 {
		p := penalty()
		p.Decay = time.Duration(1+r.IntN(120)) * time.Second
		p.Grace = time.Duration(1+r.IntN(5000)) * time.Millisecond
		first := time.Duration(1 + r.Int64N(10_000_000_000))
		p.Strikes = 2 + max(int(math.Ceil(math.Log2(float64(p.Decay)/float64(max(p.Grace, first))))), 0)
		longest := p.Decay + time.Duration(r.IntN(3600))*time.Second
		b.neverBanned(day(p), fmt.Sprintf("doubling from %v to %v with %+v", first, longest, p), double(first, longest))
		p.Strikes = 1 + r.IntN(3)
		b.neverBanned(day(p), fmt.Sprintf("waiting at least Decay with %+v", p), func() time.Duration {
			return p.Decay + time.Duration(r.Int64N(2_000_000_000))
		})
	}
}

// neverBanned sends 60 requests of one client, with pauses between them, to an
// exhausted quota.
func (b *bench) neverBanned(p *ratelimit.Plan, client string, pause func() time.Duration) {
	b.Helper()
	b.takeN(client, p, 1)
	for i := range 60 {
		if d := b.takeN(client, p, 1); d.Outcome != limited {
			b.Fatalf("a client %s is %v at request %d", client, d.Outcome, i+1)
		}
		b.advance(pause())
	}
}
