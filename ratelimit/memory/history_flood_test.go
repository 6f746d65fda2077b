package memory_test

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

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
	save(h.t, h.engine, h.disk)
	opts := memory.Options{MaxSubjects: historyBound, Now: h.clock.Now, Secret: h.engine.Secret()}
	h.engine = newLimiter(h.t, opts)
	// Those of the flood that are loaded first may leave no room for others.
	records := slices.SortedFunc(maps.Values(h.disk), func(a, b memory.Record) int { return int(b.Expires - a.Expires) })
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
}

// emptied forgets by which limits the windows of d were measured in which nothing
// is used, and all windows that are over: they may begin anew.
func (h *history) emptied(subject string, d ratelimit.Decision) {
	maps.DeleteFunc(h.limits[subject], func(_ time.Duration, m measure) bool { return m.end <= h.clock.Now().Unix() })
	for i := range engine.Of(d.Plan).Len() {
		if q := engine.Of(d.Plan).Quota(i); d.States[i].Remaining == q.Limit {
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
		q, end := engine.Of(d.Plan).Quota(i), d.States[i].Reset
		m := h.limits[subject][q.Window]
		if m.end != end {
			m = measure{end, q.Limit}
		}
		m.limit = min(m.limit, q.Limit)
		h.limits[subject][q.Window] = m
	}
	h.emptied(subject, d)
}

// held reports whether a subject must not be forgotten: it is banned, has strikes,
// or has used half of a limit that one of its windows was measured by.
func (h *history) held(subject string) bool {
	for _, plan := range historyPlans {
		d, err := h.model.Peek(ctx, subject, plan)
		if err != nil {
			h.t.Fatal(err)
		}
		if d.Outcome == ratelimit.Banned || d.StrikesLeft >= 0 && d.StrikesLeft < plan.Penalty().Strikes {
			return true
		}
		for i := range engine.Of(plan).Len() {
			q := engine.Of(plan).Quota(i)
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
// what the held subjects are answered after it. The others are reset, as are the
// new ones, so that nothing has to be forgotten before the next flood.
func (h *history) flood() {
	h.note("flood")
	h.oldest = h.clock.Now() // at the bound, what is over gives way at once
	for range 2 * historyBound {
		h.floods++
		if _, err := h.engine.Take(ctx, fmt.Sprint("flood ", h.floods), floodPlan, 120); err != nil {
			h.diff = fmt.Sprintf("a new subject was refused, though few others are held: %v", err)
			return
		}
	}
	for i := range 2 * historyBound {
		if err := h.engine.Reset(ctx, fmt.Sprint("flood ", h.floods-i)); err != nil {
			h.diff = err.Error()
		}
	}
	for _, subject := range []string{"a", "b", "c", "d"} {
		if !h.held(subject) {
			h.note("not held, and reset:", subject)
			h.reset(subject)
			continue
		}
		if diff := h.peek(subject); diff != "" {
			h.diff = fmt.Sprintf("%s is held:\n%s", subject, diff)
			return
		}
	}
}
