package memory

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/testenv"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// Random histories of what is the engine's own: floods of new subjects at the bound,
// restarts, old refunds, shares, and plan switches beside charges. The engine
// answers as the model does, but that after a flood it may have forgotten the
// subjects that are not kept.
func TestHistories(t *testing.T) {
	many := *histories
	if !testenv.IsLong() {
		many = min(many, 100)
	}
	for seed := range many {
		h := newHistory(t, seed)
		for range 200 {
			h.step()
			if h.diff != "" {
				t.Fatalf("history %d: the engine (+) and the model (-) differ after\n%s\n%s",
					seed, strings.Join(h.log[max(len(h.log)-25, 0):], "\n"), h.diff)
			}
		}
	}
}

const historyBound = 48

var historyPlans = func() []*ratelimit.Plan {
	p := ratelimit.Penalty{Strikes: 2, Grace: time.Second, Decay: 20 * time.Second, Ban: 20 * time.Second, Growth: 2, Max: time.Minute, Forgive: time.Minute}
	return []*ratelimit.Plan{
		ratelimit.MustPlan("small", p, seconds(4, 10), seconds(8, 60)),
		ratelimit.MustPlan("large", p, seconds(40, 10), seconds(100, 60)),
		ratelimit.MustPlan("lenient", ratelimit.Penalty{}, seconds(6, 10), seconds(50, 60)),
		ratelimit.MustPlan("other", p, seconds(9, 30), seconds(12, 60), seconds(60, 3600)),
		ratelimit.MustPlan("one", ratelimit.Penalty{}, seconds(15, 60)),
		ratelimit.MustPlan("wide", p, seconds(1<<35, 60), seconds(1<<36, 3600)),
	}
}()

type history struct {
	t      *testing.T
	rand   *rand.Rand
	clock  *ratelimittest.Clock
	oldest time.Time // the clock does not step back further
	engine *Limiter
	disk   disk
	model  enginetest.Model
	done   []func(enginetest.Model) // all that was done to the model, clock included
	limits map[string]map[time.Duration]measure
	past   []charged
	leases []lease
	floods int
	log    []string
	diff   string
}

// A charged is a decision that can be refunded.
type charged struct {
	subject string
	d       ratelimit.Decision
}

// A lease is an answer of Lease, by the engine and by the model: each has a generation of its
// own in it.
type lease struct {
	subject   string
	got, want ratelimit.Decision
}

// A measure is the smallest limit that a window was measured against.
type measure struct{ end, limit int64 }

func newHistory(t *testing.T, seed int) *history {
	h := &history{
		t: t, rand: rand.New(rand.NewPCG(uint64(seed), 1)), clock: ratelimittest.NewClock(noon), oldest: noon,
		disk: disk{}, limits: map[string]map[time.Duration]measure{},
	}
	h.model = enginetest.NewModel(h.clock.Now)
	var secret []byte // of the seed, since it decides where slots lie
	for range 4 {
		secret = binary.LittleEndian.AppendUint64(secret, h.rand.Uint64())
	}
	h.engine = newLimiter(t, Options{MaxSubjects: historyBound, Now: h.clock.Now, Secret: secret})
	return h
}

func (h *history) step() {
	subject := string(rune('a' + h.rand.IntN(4)))
	plan := historyPlans[h.rand.IntN(len(historyPlans))]
	cost := 1 + h.rand.Int64N(4)
	if plan.Name() == "wide" && h.rand.IntN(2) == 0 {
		cost = 1 + h.rand.Int64N(1<<33)
	}
	switch n := h.rand.IntN(100); {
	case n < 25:
		h.move()
	case n < 27:
		h.restart()
	case n < 29:
		h.flood()
	case n < 34 && len(h.past) > 0:
		c := h.past[h.rand.IntN(len(h.past))]
		h.note("refund", c.d.Cost, "of", c.subject, c.d.Plan, c.d.States)
		h.do(func(m enginetest.Model) { _ = m.Adjust(ctx, c.subject, &c.d, 0, "") })
		if err := h.engine.Adjust(ctx, c.subject, &c.d, 0, ""); err != nil {
			h.diff = err.Error()
		}
		if d, err := h.model.Peek(ctx, c.subject, c.d.Plan); err == nil {
			h.emptied(c.subject, d)
		}
	case n < 36:
		h.note("ban", subject)
		h.do(func(m enginetest.Model) { _ = m.Ban(ctx, subject, 5*time.Second, "") })
		if err := h.engine.Ban(ctx, subject, 5*time.Second, ""); err != nil {
			h.diff = err.Error()
		}
	case n < 38:
		h.note("reset", subject)
		h.reset(subject)
	case n < 44:
		h.beside(subject, plan, historyPlans[h.rand.IntN(len(historyPlans))], cost)
	case n < 52:
		h.lease(subject, plan, max(cost-2, 0))
	default:
		h.note("take", cost, "for", subject, plan)
		got := takeUnits(h.t, h.engine, subject, plan, cost)
		h.diff = diffDecisions(h.takeModel(subject, plan, cost), got)
		h.took(subject, got)
	}
}

func (h *history) note(what ...any) { h.log = append(h.log, strings.TrimSpace(fmt.Sprintln(what...))) }

// do does something to the model.
func (h *history) do(f func(enginetest.Model)) {
	f(h.model)
	h.done = append(h.done, f)
}

func (h *history) takeModel(subject string, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision) {
	h.do(func(m enginetest.Model) { d = takeUnits(h.t, m, subject, plan, cost) })
	return d
}

// lease charges a share, and often gives back a part of an earlier one.
func (h *history) lease(subject string, plan *ratelimit.Plan, cost int64) {
	terms := engine.Terms{More: h.rand.Int64N(8), Denied: max(h.rand.IntN(6)-3, 0)}
	mine := terms
	if i := h.rand.IntN(2 * (len(h.leases) + 1)); i < len(h.leases) {
		back := h.leases[i]
		back.got.Cost -= h.rand.Int64N(back.got.Cost + 1)
		back.want.Cost = back.got.Cost
		subject, terms.Back, mine.Back = back.subject, &back.got, &back.want
		h.leases = slices.Delete(h.leases, i, i+1)
		h.note("back:", back.got.Cost, "of", back.got.Plan, back.got.States)
	}
	h.note("lease", cost, "for", subject, plan, "and", terms.More, "more,", terms.Denied, "denied")
	got, err := h.engine.Lease(ctx, subject, plan, cost, terms)
	must(h.t, err)
	var want ratelimit.Decision
	h.do(func(m enginetest.Model) { want, _ = m.Lease(ctx, subject, plan, cost, mine) })
	if got.Allowed() && got.Cost > 0 {
		h.leases = append(h.leases, lease{subject, got, want})
	}
	if cost+got.Cost > 0 {
		h.took(subject, got)
	}
	if terms.Back != nil {
		d, err := h.model.Peek(ctx, subject, terms.Back.Plan)
		must(h.t, err)
		h.emptied(subject, d)
	}
	got.Receipt.SetGeneration(0)
	want.Receipt.SetGeneration(0)
	h.diff = diffDecisions(want, got)
}

// beside takes under two plans at once. One of the two orders explains both
// answers, and what a peek finds after them.
func (h *history) beside(subject string, a, b *ratelimit.Plan, cost int64) {
	h.note("take", cost, "for", subject, a, "beside 1 under", b)
	var gotA, gotB ratelimit.Decision
	var wg sync.WaitGroup
	wg.Go(func() { gotA = takeUnits(h.t, h.engine, subject, a, cost) })
	gotB = takeUnits(h.t, h.engine, subject, b, 1)
	wg.Wait()
	before := len(h.done)
	h.diff = diffDecisions(h.takeModel(subject, a, cost), gotA) + diffDecisions(h.takeModel(subject, b, 1), gotB) + h.peek(subject)
	if h.diff != "" {
		now := h.clock.Now()
		h.clock.Set(noon)
		h.model, h.done = enginetest.NewModel(h.clock.Now), h.done[:before]
		for _, f := range h.done {
			f(h.model)
		}
		h.clock.Set(now)
		h.diff = diffDecisions(h.takeModel(subject, b, 1), gotB) + diffDecisions(h.takeModel(subject, a, cost), gotA) + h.peek(subject)
	}
	h.took(subject, gotA)
	h.took(subject, gotB)
	if gotA.Allowed() != gotB.Allowed() && !gotA.Struck && !gotB.Struck {
		// A grace is remembered until all windows end that were open at the last refusal.
		// Which windows these were depends on the order, and no answer shows it.
		h.note("reset", subject)
		h.reset(subject)
	}
}

// peek compares where a subject stands under each plan.
func (h *history) peek(subject string) (diff string) {
	for _, plan := range historyPlans {
		want, wantErr := h.model.Peek(ctx, subject, plan)
		got, err := h.engine.Peek(ctx, subject, plan)
		if err != nil || wantErr != nil {
			h.t.Fatal(err, wantErr)
		}
		diff += diffDecisions(want, got)
	}
	return diff
}

// move sets the clock: mostly forwards, sometimes back by less than a minute.
func (h *history) move() {
	d := time.Duration(h.rand.IntN(4000)) * time.Millisecond
	switch h.rand.IntN(10) {
	case 0:
		d = time.Duration(h.rand.IntN(200)) * time.Second
	case 1:
		d = -time.Duration(h.rand.IntN(30_000)) * time.Millisecond
	}
	now := h.clock.Now().Add(d)
	if now.Before(h.oldest) {
		now = h.oldest
	}
	if oldest := now.Add(-50 * time.Second); oldest.After(h.oldest) {
		h.oldest = oldest
	}
	h.note("clock", now.Format("15:04:05.000"))
	h.do(func(enginetest.Model) { h.clock.Set(now) })
}

func (h *history) restart() {
	h.note("restart")
	h.leases = nil
	save(h.t, h.engine, h.disk)
	opts := Options{MaxSubjects: historyBound, Now: h.clock.Now, Secret: h.engine.Secret()}
	h.engine = newLimiter(h.t, opts)
	// Those of the flood that are loaded first may leave no room for others.
	records := slices.SortedFunc(maps.Values(h.disk), func(a, b Record) int { return int(b.Expires - a.Expires) })
	if err := h.engine.Load(records); err != nil {
		h.diff = err.Error()
	}
}

func (h *history) reset(subject string) {
	h.do(func(m enginetest.Model) { _ = m.Reset(ctx, subject) })
	if err := h.engine.Reset(ctx, subject); err != nil {
		h.diff = err.Error()
	}
	delete(h.limits, subject)
	h.leases = slices.DeleteFunc(h.leases, func(l lease) bool { return l.subject != subject }) // those may be void too
}

// emptied forgets by which limits the windows of d were measured in which nothing
// is used, and all windows that are over: they may begin anew.
func (h *history) emptied(subject string, d ratelimit.Decision) {
	maps.DeleteFunc(h.limits[subject], func(_ time.Duration, m measure) bool { return m.end <= h.clock.Now().Unix() })
	for i := range engine.Of(d.Plan).Len() {
		if q := d.Plan.Numbers().Quota(i); d.States[i].Remaining == q.Limit {
			delete(h.limits[subject], q.Window)
		}
	}
}

// took remembers by which limits the windows of a subject were measured.
func (h *history) took(subject string, d ratelimit.Decision) {
	if d.Allowed() {
		h.past = append(h.past, charged{subject, d})
		h.past = h.past[max(len(h.past)-20, 0):]
	}
	if h.limits[subject] == nil {
		h.limits[subject] = map[time.Duration]measure{}
	}
	for i := range engine.Of(d.Plan).Len() {
		q, end := d.Plan.Numbers().Quota(i), d.States[i].Reset
		m := h.limits[subject][q.Window]
		if m.end != end {
			m = measure{end, q.Limit}
		}
		m.limit = min(m.limit, q.Limit)
		h.limits[subject][q.Window] = m
	}
	h.emptied(subject, d)
}

// kept reports whether a subject must not be forgotten: it is banned, has strikes,
// or has used half of a limit that one of its windows was measured by.
func (h *history) kept(subject string) bool {
	for _, plan := range historyPlans {
		d, err := h.model.Peek(ctx, subject, plan)
		must(h.t, err)
		if d.Outcome == ratelimit.Banned || d.StrikesLeft >= 0 && d.StrikesLeft < plan.Penalty().Strikes {
			return true
		}
		for i := range engine.Of(plan).Len() {
			q := plan.Numbers().Quota(i)
			m, measured := h.limits[subject][q.Window]
			if measured && m.end == d.States[i].Reset && (q.Limit-d.States[i].Remaining)*2 >= m.limit {
				return true
			}
		}
	}
	return false
}

var floodPlan = ratelimit.MustPlan("flood", ratelimit.Penalty{}, seconds(1000, 60))

// flood sends requests for more new subjects than there is room for, and compares
// what the kept subjects are answered after it. The others are reset, as are the
// new ones, so that nothing has to be forgotten before the next flood.
func (h *history) flood() {
	h.note("flood")
	h.leases = nil
	h.oldest = h.clock.Now() // at the bound, what is over gives way immediately
	for range 2 * historyBound {
		h.floods++
		if _, err := h.engine.Take(ctx, fmt.Sprint("flood ", h.floods), floodPlan, 120); err != nil {
			h.diff = fmt.Sprintf("a new subject was refused, though few others are kept: %v", err)
			return
		}
	}
	for i := range 2 * historyBound {
		if err := h.engine.Reset(ctx, fmt.Sprint("flood ", h.floods-i)); err != nil {
			h.diff = err.Error()
		}
	}
	for _, subject := range []string{"a", "b", "c", "d"} {
		if !h.kept(subject) {
			h.note("not kept, and reset:", subject)
			h.reset(subject)
			continue
		}
		if diff := h.peek(subject); diff != "" {
			h.diff = fmt.Sprintf("%s is kept:\n%s", subject, diff)
			return
		}
	}
}
