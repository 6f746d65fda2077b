package memory

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// While a table remembers that no slot of a block can make room, none can, whatever was
// done meanwhile: a subject that is unbanned, reset or refunded makes room immediately. No
// call leaves a slot frozen, and the layouts that slots have are counted.
func TestFullIsTrue(t *testing.T) {
	race.Skip(t)
	penalty := ratelimit.Penalty{Strikes: 1, Decay: 7 * time.Second, Ban: 13 * time.Second, Growth: 2, Max: time.Minute, Forgive: 30 * time.Second}
	quota := func(limit int64, seconds int) ratelimit.Quota {
		return ratelimit.Quota{Limit: limit, Window: time.Duration(seconds) * time.Second}
	}
	plans := []*ratelimit.Plan{
		ratelimit.MustPlan("two", penalty, quota(2, 10), quota(6, 60)),
		ratelimit.MustPlan("one", ratelimit.Penalty{}, quota(4, 7)),
		ratelimit.MustPlan("long", ratelimit.Penalty{}, quota(4, 10), quota(9, 300)),
	}
	for seed := range 2000 {
		r := rand.New(rand.NewPCG(uint64(seed), 3))
		clock := ratelimittest.NewClock(noonSharp())
		bound := 1 + r.IntN(5)
		l := newLimiter(t, Options{MaxSubjects: bound, Now: clock.Now})
		var log []string
		var past []func() error
		for range 80 {
			subject := fmt.Sprint(r.IntN(bound + 1))
			log = append(log, fullStep(l, clock, r, subject, plans, &past))
			if kept := l.Stats().Subjects; kept < 0 || kept > int64(bound) {
				t.Fatalf("%d places are in use, and there are %d", kept, bound)
			}
			if why := l.wrong(); why != "" {
				t.Fatalf("history %d: %s after\n%s", seed, why, strings.Join(log, "\n"))
			}
		}
	}
}

// fullStep does one random thing and returns what it was.
func fullStep(l *Limiter, clock *ratelimittest.Clock, r *rand.Rand, subject string, plans []*ratelimit.Plan, past *[]func() error) string {
	ctx, plan := ctx, plans[r.IntN(len(plans))]
	switch n := r.IntN(16); {
	case n < 2:
		by := time.Duration(r.IntN(20_000)-5000) * time.Millisecond
		if r.IntN(12) == 0 {
			by *= 3600
		}
		clock.Set(clock.Now().Add(by))
		return fmt.Sprint("clock ", clock.Now())
	case n == 2:
		banned, err := l.Unban(ctx, subject)
		return fmt.Sprintln("unban", subject, banned, err)
	case n == 3 && r.IntN(3) == 0:
		return fmt.Sprintln("reset", subject, l.Reset(ctx, subject))
	case n == 4:
		length := time.Duration(1+r.IntN(60)) * time.Second
		return fmt.Sprintln("ban", subject, length, l.Ban(ctx, subject, length, ""))
	case n == 5 && len(*past) > 0:
		return fmt.Sprintln("refund", (*past)[r.IntN(len(*past))]())
	case n == 6:
		d := engine.Uncounted(plan, 0, clock.Now())
		return fmt.Sprintln("charge", subject, plan, l.Adjust(ctx, subject, &d, 1, ""))
	}
	if r.IntN(4) == 0 {
		charges := []ratelimit.Charge{{Subject: subject, Plan: plan, Cost: 1}, {Subject: "0", Plan: plans[r.IntN(len(plans))], Cost: 1}, {Subject: "new", Plan: plan, Cost: 1}}
		return fmt.Sprintln("take all", charges, l.TakeAll(ctx, charges, make([]ratelimit.Decision, len(charges))))
	}
	d, err := l.Take(ctx, subject, plan, 1)
	if err == nil && d.Allowed() {
		*past = append(*past, func() error { return l.Adjust(ctx, subject, &d, 0, "") })
	}
	return fmt.Sprintln("take", subject, plan, d.Outcome, err)
}

// wrong names what is wrong with the only segment, such as a slot that could make room
// although the table says that none can in its block.
func (l *Limiter) wrong() string {
	s, now := &l.segments[0], l.clock.now()
	t, layouts := s.table.Load(), map[int]int{}
	for i := range t.slots {
		slot, kept := t.slot(i), max(t.kept[i/blockSlots], t.allKept)
		m := slot.meter()
		if slot.hash() == 0 {
			continue
		}
		if !m.isConduct() {
			layouts[m.layout()]++
		}
		if m.isFrozen() {
			return fmt.Sprintf("slot %d is frozen", i)
		}
		if kept <= now || s.roomTime > now {
			continue
		}
		if until, _ := s.keptUntil(slot, slot.meter(), now); until < kept {
			return fmt.Sprintf("slot %d is kept until %d, and its block until %d", i, until, kept)
		}
	}
	for number := range l.layouts.used {
		if n := l.layouts.get(number).accounts.Load(); n != int64(layouts[number]) {
			return fmt.Sprintf("%d accounts have layout %d, and %d are counted", layouts[number], number, n)
		}
	}
	return ""
}
