package enginetest

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// step does one random thing to the engine and to the model. It returns how
// they differ.
func (h *history) step() string {
	subject := string(rune('a' + h.rand.IntN(3)))
	plan := h.plan(subject)
	switch n := h.rand.IntN(100); {
	case n < 25:
		h.move(subject)
		return ""
	case n < 29:
		return h.around(subject)
	case n < 34:
		return h.agree(fmt.Sprint("peek ", subject, " ", plan), func(l ratelimit.Limiter) (any, error) {
			return l.(engine.Peeker).Peek(ctx, subject, plan)
		})
	case n < 50:
		return h.correct(n, subject, plan)
	case n < 51 && h.engine.Restart != nil:
		h.restart()
		return ""
	case n < 60:
		return h.takeAll()
	case n < 70:
		return h.lease(subject, plan)
	case n < 75:
		return h.insist(subject, plan)
	}
	return h.take(subject, plan)
}

// correct changes what is known of a subject without a request. The number is that of step, from 34.
func (h *history) correct(n int, subject string, plan *ratelimit.Plan) string {
	switch {
	case n < 36:
		return h.reset(subject, plan)
	case n < 41 && len(h.admitted) > 0:
		return h.adjust()
	case n < 43:
		return h.overlap(subject, plan)
	case n < 45:
		return h.chargeElsewhere(subject, plan)
	case n < 48:
		return h.ban(subject, plan)
	case n < 49:
		return h.agree("unban "+subject, func(l ratelimit.Limiter) (any, error) {
			return l.(engine.Banner).Unban(ctx, subject)
		})
	}
	return h.bans()
}

func (h *history) take(subject string, plan *ratelimit.Plan) string {
	c, cost := charge{subject: subject}, h.cost(plan)
	diff := h.agree(fmt.Sprint("take ", subject, " ", cost, " ", plan), func(l ratelimit.Limiter) (any, error) {
		d, err := l.Take(ctx, subject, plan, cost)
		*h.of(&c, l) = d
		return d, err
	})
	if c.model.Allowed() {
		h.keep(c)
	}
	return diff
}

// takeAll charges some of the subjects together.
func (h *history) takeAll() string {
	if _, ok := h.engine.Limiter.(engine.MultiTaker); !ok || h.inOrder {
		return ""
	}
	charges, text := make([]ratelimit.Charge, 1+h.rand.IntN(3)), "take all"
	for i, subject := range h.rand.Perm(3)[:len(charges)] {
		name := string(rune('a' + subject))
		plan := h.plan(name)
		charges[i] = ratelimit.Charge{Subject: name, Plan: plan, Cost: h.cost(plan)}
		text += fmt.Sprint(", ", name, " ", charges[i].Cost, " ", plan)
	}
	var made [3]charge
	diff := h.agree(text, func(l ratelimit.Limiter) (any, error) {
		var decisions [len(made)]ratelimit.Decision
		for i := range charges { // what was there before must not matter
			decisions[i] = ratelimit.Decision{Outcome: banned, Struck: true, Applicable: 3, RetryAfter: 1, BanEnds: 1, StrikesLeft: 99}
		}
		err := ratelimit.TakeAll(ctx, l, charges, decisions[:len(charges)])
		for i, d := range decisions {
			*h.of(&made[i], l) = d
		}
		return decisions, err
	})
	for i, c := range charges {
		if made[i].subject = c.Subject; made[i].model.Allowed() {
			h.keep(made[i])
		}
	}
	return diff
}

// insist has a client send requests until it is banned, or nearly, and often again after that.
func (h *history) insist(subject string, plan *ratelimit.Plan) (diff string) {
	for n := 2 + h.rand.IntN(14); n > 0 && diff == ""; n-- {
		now := h.clock.Now()
		switch s, _ := h.model.subject(subject); {
		case s.until.After(now) && s.until.Before(now.Add(5*time.Minute)):
			h.set(s.until.UTC())
		case h.rand.IntN(3) == 0:
			h.set(now.Add(time.Duration(h.rand.IntN(3000)) * time.Millisecond))
		}
		diff = h.take(subject, plan)
	}
	return diff
}

// reset forgets a subject, and then often gives back what it was charged before.
func (h *history) reset(subject string, plan *ratelimit.Plan) string {
	// An engine need not give back what other subjects were charged.
	h.leases = slices.DeleteFunc(h.leases, func(c charge) bool { return c.subject != subject })
	diff := h.agree("reset "+subject, func(l ratelimit.Limiter) (any, error) {
		return nil, l.(resetter).Reset(ctx, subject)
	})
	for n := h.rand.IntN(4); n > 0 && diff == ""; n-- {
		diff = h.lease(subject, plan)
	}
	return diff
}

// restart continues with an engine that knows what this one has saved.
func (h *history) restart() {
	h.log = append(h.log, "restart")
	h.engine.Limiter, h.leases = h.engine.Restart(), nil
	// What was given back to smooth quotas is known for charges of one process.
	h.admitted = slices.DeleteFunc(h.admitted, func(c charge) bool { return engine.Of(c.model.Plan).Smooth() })
	for _, s := range h.model.subjects {
		clear(s.returns)
	}
}

// around has a subject do something just before and after the end of what it has, in any order.
func (h *history) around(subject string) (diff string) {
	end := h.end(subject)
	for n := 2 + h.rand.IntN(3); n > 0 && diff == ""; n-- {
		h.setBeside(end)
		switch plan := h.plan(subject); h.rand.IntN(6) {
		case 0:
			diff = h.lease(subject, plan)
		case 1:
			diff = h.takeAll()
		case 2:
			if len(h.admitted) > 0 {
				diff = h.adjust()
			}
		default:
			diff = h.take(subject, plan)
		}
	}
	return diff
}

// ban bans a subject by hand, often when something of it ends, such as the memory of other bans.
func (h *history) ban(subject string, plan *ratelimit.Plan) string {
	if h.rand.IntN(2) == 0 {
		h.setBeside(h.end(subject))
	}
	length := time.Duration(1+h.rand.IntN(30_000)) * time.Millisecond
	if forgive := plan.Penalty().Forgive; h.rand.IntN(2) == 0 { // beyond the time at which a level is forgiven
		length = min(length+time.Duration(1+h.rand.IntN(3))*forgive, fixedwindow.MaxLength)
	}
	reason := oneOf(h.rand, "", "by hand", "strikes", "spam", strings.Repeat("é", 100))
	diff := h.agree(fmt.Sprintf("ban %s for %v, %s", subject, length, reason), func(l ratelimit.Limiter) (any, error) {
		return nil, l.(engine.Banner).Ban(ctx, subject, length, reason)
	})
	if diff == "" && h.rand.IntN(2) == 0 {
		diff = h.bans()
	}
	return diff
}

func (h *history) bans() string {
	return h.agree("list bans", func(l ratelimit.Limiter) (any, error) {
		bans, err := l.(engine.Banner).Bans(ctx)
		lines := make([]string, len(bans))
		for i, b := range bans {
			lines[i] = fmt.Sprintf("%s until %v, level %d, %s\n", b.Subject, b.Ends.UTC(), b.Level, b.Reason)
		}
		slices.Sort(lines)
		return strings.Join(lines, ""), err
	})
}

// adjust makes an earlier request cost other units: mostly nothing, less or more.
func (h *history) adjust() string {
	c := &h.admitted[h.rand.IntN(len(h.admitted))]
	cost := c.model.Cost
	return h.adjustTo(c, oneOf(h.rand, 0, 0, h.rand.Int64N(cost+1), cost+h.cost(c.model.Plan), min(cost, math.MaxInt64/10)*10, 1<<32, math.MaxInt64))
}

// overlap makes several requests of a subject, which end and are given back in any order.
func (h *history) overlap(subject string, plan *ratelimit.Plan) (diff string) {
	before := h.admitted
	h.admitted = nil
	for n := 16; n > 0 && diff == ""; n-- {
		switch n := h.rand.IntN(5); {
		case n < 1:
			h.move(subject)
		case n < 3 || len(h.admitted) == 0:
			diff = h.take(subject, plan)
		default:
			c := &h.admitted[h.rand.IntN(len(h.admitted))]
			diff = h.adjustTo(c, h.rand.Int64N(c.model.Cost+1))
		}
	}
	h.admitted = append(h.admitted, before...)
	h.admitted = h.admitted[:min(len(h.admitted), 16)]
	return diff
}

// adjustTo makes a charge cost some units. It sometimes repeats that, as if the answer was lost.
func (h *history) adjustTo(c *charge, units int64) string {
	id, repeated := fmt.Sprint(h.rand.Uint64()), h.rand.IntN(3) == 0 && h.engine.Remembers
	what := fmt.Sprint("adjust ", c.subject, " to ", units, ", from ", c.model.Cost, " ", c.model.Plan, " at ", c.model.Time, " ", c.model.States)
	diff := h.agree(what, func(l ratelimit.Limiter) (any, error) {
		err := l.(engine.Adjuster).Adjust(ctx, c.subject, h.of(c, l), units, id)
		if err == nil && repeated && l != ratelimit.Limiter(h.model) {
			err = l.(engine.Adjuster).Adjust(ctx, c.subject, h.of(c, l), units, id)
		}
		return nil, err
	})
	if h.rand.IntN(8) > 0 { // otherwise it is adjusted again from the same cost, which is a mistake
		c.model.Cost, c.engine.Cost = min(units, fixedwindow.MaxUnits), min(units, fixedwindow.MaxUnits)
	}
	return diff
}

// chargeElsewhere adds the units of a charge that another engine has made, by its own clock.
func (h *history) chargeElsewhere(subject string, plan *ratelimit.Plan) string {
	at := h.clock.Now().Add(time.Duration(h.rand.IntN(40)-25) * time.Second)
	if isCalendar(plan) && h.rand.IntN(3) > 0 {
		at = h.clock.Now().Add(time.Duration(h.rand.IntN(60*24)-40*24) * oneOf(h.rand, time.Hour, 2*time.Minute))
	}
	d := engine.Uncounted(plan, 0, at)
	for i := range engine.Of(plan).Len() {
		if h.rand.IntN(4) == 0 || d.States[i].Reset < 0 { // engines count no time before 1970
			d.States[i].Reset = 0
		}
	}
	units := oneOf(h.rand, h.cost(plan), h.cost(plan), 1+h.rand.Int64N(engine.Of(plan).Quota(0).Limit), math.MaxInt64)
	return h.adjustTo(&charge{subject, d, d}, units)
}

// lease charges a share, beside a request or alone, and often gives back an earlier one.
func (h *history) lease(subject string, plan *ratelimit.Plan) string {
	if _, ok := h.engine.Limiter.(engine.Leaser); !ok {
		return ""
	}
	cost, terms := oneOf(h.rand, 0, h.cost(plan), h.cost(plan)), engine.Terms{More: oneOf(h.rand, 0, h.cost(plan), 8*h.cost(plan), math.MaxInt64)}
	if engine.Of(plan).Smooth() && h.rand.IntN(8) > 0 {
		terms.More = 0
	}
	if h.rand.IntN(2) == 0 {
		terms.Denied = oneOf(h.rand, 1, 2, 3, 100)
	}
	var back charge
	if i := h.rand.IntN(len(h.leases) + 1); i < len(h.leases) {
		back = h.leases[i]
		subject = back.subject
		back.model.Cost -= h.rand.Int64N(back.model.Cost + 1)
		back.engine.Cost = back.model.Cost
		if h.rand.IntN(8) > 0 { // otherwise it may be given back again, which is a mistake
			h.leases = slices.Delete(h.leases, i, i+1)
		}
	}
	made := charge{subject: subject}
	what := fmt.Sprint("lease ", subject, " ", cost, " ", plan, ", ", terms.More, " more, ", terms.Denied, " denied, ", back.model.Cost, " back of ", back.model.Plan)
	diff := h.agree(what, func(l ratelimit.Limiter) (any, error) {
		mine := terms
		if back.subject != "" {
			mine.Back = h.of(&back, l)
		}
		d, err := l.(engine.Leaser).Lease(ctx, subject, plan, cost, mine)
		*h.of(&made, l) = d
		d.Receipt.SetGeneration(0) // each engine counts them in its own way
		return d, err
	})
	if made.model.Cost > 0 && made.model.Allowed() {
		h.leases = append(h.leases[max(len(h.leases)-7, 0):], made)
		h.keep(made)
	}
	return diff
}

// plan returns the plan of a request: of each subject mostly the same one, or mostly one of two.
func (h *history) plan(subject string) *ratelimit.Plan {
	switch {
	case h.loyal && h.rand.IntN(30) > 0:
		return h.plans[int(subject[0]-'a')%len(h.plans)]
	case !h.loyal && h.rand.IntN(3) > 0:
		return h.plans[h.rand.IntN(2)]
	}
	return h.plans[h.rand.IntN(len(h.plans))]
}

// cost returns what a request under a plan costs: one unit or two or, if the limits are
// large, often much more, and about 2³².
func (h *history) cost(plan *ratelimit.Plan) int64 {
	most := mostOf(plan)
	switch {
	case h.rand.IntN(12) == 0:
		return most
	case most > 100 && h.rand.IntN(2) == 0:
		return min(oneOf(h.rand, 1+h.rand.Int64N(most), 1+h.rand.Int64N(1<<33), 1<<32+1-h.rand.Int64N(4)), most)
	}
	return min(1+h.rand.Int64N(2), most)
}

// move sets both clocks: mostly forwards, by a little or by much, sometimes back by less than
// a minute, and often to just before or after the moment at which something ends.
func (h *history) move(subject string) {
	now := h.clock.Now()
	switch h.rand.IntN(12) {
	case 0:
		h.set(now.Add(time.Duration(h.rand.IntN(100)) * time.Second))
	case 1:
		h.set(now.Add(-time.Duration(h.rand.IntN(12_000)) * time.Millisecond))
	case 2:
		h.set(now.Add(time.Duration(h.rand.IntN(20)) * time.Hour / 10))
	case 3: // strikes decay by whole seconds, and the grace is two seconds
		h.set(now.Truncate(time.Second).Add(time.Duration(h.rand.IntN(10)) * time.Second))
	case 4, 5, 6:
		h.setBeside(h.end(subject))
	default:
		h.set(now.Add(time.Duration(h.rand.IntN(3000)) * time.Millisecond))
	}
}

// beside are times between the end of something and a moment before or after it.
var beside = []time.Duration{-time.Second, -time.Millisecond, -time.Microsecond, 0, 0, time.Microsecond, time.Millisecond, 999 * time.Millisecond, time.Second}

// setBeside sets both clocks to just before or after an end, unless it is zero.
func (h *history) setBeside(end time.Time) {
	if !end.IsZero() {
		h.set(end.Add(oneOf(h.rand, beside...)))
	}
}

// end returns a moment at which something of a subject ends, or ended shortly before: zero if
// there is none.
func (h *history) end(subject string) time.Time {
	far := h.clock.Now().Add(oneOf(h.rand, time.Minute, time.Hour))
	if h.far && h.rand.IntN(3) == 0 {
		far = far.Add(2000 * time.Hour)
	}
	ends := append(h.model.ends(subject, oneOf(h.rand, h.plans...).Penalty()), h.visited...)
	ends = slices.DeleteFunc(append(ends, h.fits), func(t time.Time) bool {
		return t.After(far) || t.Before(h.latest.Add(-h.back))
	})
	if len(ends) == 0 {
		return time.Time{}
	}
	end := oneOf(h.rand, ends...).Truncate(time.Microsecond)
	h.visited = append(h.visited[max(len(h.visited)-1, 0):], end)
	return end
}
