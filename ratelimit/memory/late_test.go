package memory

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// Random requests, groups and bans by hand, on an engine with a late time on the fast path, get what the
// model decides at the time that the decision names. None is refused that the exact time
// admits, none is struck by a late time, and none waits longer for it that waits less than
// a second.
func TestLateTimesAgreeWithTheModel(t *testing.T) {
	for seed := range race.Fewer(60) {
		h := newLateHistory(t, seed)
		for range 100 {
			h.move()
			if h.rand.IntN(10) == 0 {
				h.ban()
			}
			if wrong := h.take(); wrong != "" {
				t.Fatalf("history %d: %s\nafter\n%s", seed, wrong, strings.Join(h.log[max(len(h.log)-15, 0):], "\n"))
			}
		}
	}
}

// A ban that is over by the exact time leaves no reason in a decision.
func TestLateBanLeavesNoReason(t *testing.T) {
	clock := ratelimittest.NewClock(noonSharp().Add(900 * ms))
	l := newLimiter(t, Options{Now: clock.Now})
	plan := ratelimit.MustPlan("smooth", ratelimit.Penalty{}, seconds(2, 3).Smooth(1))
	take(t, l, "a", plan)   // there is no room until 2.4s
	banByStrikes(t, l, "a") // until 2s
	clock.Set(noonSharp().Add(2100 * ms))
	l.clock.coarseTime.Store(noonSharp().Add(1800 * ms).UnixNano())
	if d := take(t, l, "a", plan); d.Outcome != ratelimit.Limited || d.BanReason() != "" {
		t.Errorf("got %v for %q, want limited without a reason", d.Outcome, d.BanReason())
	}
}

// A lateHistory is an engine and a model with clocks of their own.
type lateHistory struct {
	t             *testing.T
	rand          *rand.Rand
	engine        *Limiter
	model         enginetest.Model
	clock, models *ratelimittest.Clock
	exact, late   time.Time
	retry         time.Time // when the last request that was limited is to come back
	plans         []*ratelimit.Plan
	charges       []ratelimit.Charge
	log           []string
}

func newLateHistory(t *testing.T, seed int) *lateHistory {
	start := time.Date(2026, time.February, 28, 23, 59, 50, 0, time.UTC)
	h := &lateHistory{
		t: t, rand: rand.New(rand.NewPCG(uint64(seed), 3)), exact: start,
		clock: ratelimittest.NewClock(start), models: ratelimittest.NewClock(start),
	}
	h.engine, h.model = newLimiter(t, Options{Now: h.clock.Now}), enginetest.NewModel(h.models.Now)
	for len(h.plans) < 3 {
		quotas := make([]ratelimit.Quota, 1+h.rand.IntN(3))
		for i := range quotas {
			limit := pick[int64](h.rand, 1, 2, 3, 7, 20, 333_333, 1<<33, fixedwindow.MaxUnits)
			quotas[i] = ratelimit.Quota{Limit: limit, Window: pick[time.Duration](h.rand, 1, 3, 10, 60, 3600, 366*86_400) * time.Second}
			switch h.rand.IntN(6) {
			case 0:
				quotas[i] = ratelimit.PerMonth(limit)
			case 1, 2, 3:
				quotas[i].Limit = min(limit, int64(quotas[i].Window/time.Second)*1_000_000)
				quotas[i] = quotas[i].Smooth(pick(h.rand, 1, quotas[i].Limit, 1+h.rand.Int64N(quotas[i].Limit)))
			}
		}
		penalty := pick(h.rand, ratelimit.Penalty{}, ratelimit.Penalty{
			Strikes: pick(h.rand, 1, 4), Grace: pick(h.rand, 0, 2*time.Second), Ban: time.Second, Growth: 3, Max: time.Minute, Forgive: time.Minute,
		})
		if plan, err := ratelimit.NewPlan(fmt.Sprint(len(h.plans)), penalty, quotas...); err == nil { // each window once
			h.plans = append(h.plans, plan)
		}
	}
	return h
}

func pick[T any](r *rand.Rand, values ...T) T { return values[r.IntN(len(values))] }

// move sets the clocks: mostly forwards, often to when a request can be admitted again.
func (h *lateHistory) move() {
	switch h.rand.IntN(8) {
	case 0, 1:
		h.exact = h.exact.Add(time.Duration(h.rand.IntN(1500)) * time.Millisecond)
	case 2:
		h.exact = h.exact.Truncate(time.Second).Add(time.Second + time.Duration(h.rand.IntN(3)-1)*time.Microsecond)
	case 3, 4:
		if h.retry.After(h.exact) && h.retry.Sub(h.exact) < 2*time.Hour {
			h.exact = h.retry.Add(time.Duration(h.rand.IntN(3)-1) * time.Microsecond)
		}
	case 5:
		h.exact = h.exact.Add(time.Duration(h.rand.IntN(90)-10) * time.Second / 10)
	}
	h.clock.Set(h.exact)
	h.late = h.exact.Add(-time.Duration(h.rand.Int64N(int64(pick(h.rand, 1, 3*ms, 900*ms, maxLate)))))
	h.engine.clock.coarseTime.Store(h.late.UnixNano())
}

// ban bans a subject by hand for a few seconds.
func (h *lateHistory) ban() {
	h.models.Set(h.exact)
	subject, reason := pick(h.rand, "a", "b", "c"), pick(h.rand, "", "a text", "strikes")
	length := time.Duration(1+h.rand.IntN(3000)) * ms
	h.log = append(h.log, fmt.Sprintf("%s: ban of %s for %v: %q", h.exact.Format("15:04:05.000000"), subject, length, reason))
	if err := errors.Join(h.engine.Ban(h.t.Context(), subject, length, reason), h.model.Ban(h.t.Context(), subject, length, reason)); err != nil {
		h.t.Fatal(err)
	}
}

// take charges one to three subjects. It returns what is wrong with the decisions.
func (h *lateHistory) take() string {
	if h.charges == nil || h.rand.IntN(2) == 0 { // or those of before, which may have been refused
		h.choose()
	}
	ctx := h.t.Context()
	h.log = append(h.log, fmt.Sprintf("%s, %v late: %v", h.exact.Format("15:04:05.000000"), h.exact.Sub(h.late), h.charges))
	admitted, err := h.exactlyAdmitted()
	if err != nil {
		return err.Error()
	}
	want, got := make([]ratelimit.Decision, len(h.charges)), make([]ratelimit.Decision, len(h.charges))
	if c := h.charges[0]; len(h.charges) == 1 {
		got[0], err = h.engine.Take(ctx, c.Subject, c.Plan, c.Cost)
	} else {
		err = h.engine.TakeAll(ctx, h.charges, got)
	}
	if err != nil {
		return err.Error()
	}
	at := time.Unix(0, got[0].Time).UTC()
	h.models.Set(at)
	if err := h.model.TakeAll(ctx, h.charges, want); err != nil {
		return err.Error()
	}
	if diff := diffAll(want, got); diff != "" {
		return "the engine (+) and the model (-) differ:\n" + diff
	}
	return h.check(got, at, admitted)
}

// exactlyAdmitted reports whether the model admits the charges at the exact time.
func (h *lateHistory) exactlyAdmitted() (admitted bool, err error) {
	h.models.Set(h.exact)
	admitted = true
	for _, c := range h.charges {
		d, err := h.model.Peek(h.t.Context(), c.Subject, c.Plan)
		if err != nil {
			return false, err
		}
		admitted = admitted && d.Allowed()
		for k := range engine.Of(c.Plan).Len() {
			admitted = admitted && d.States[k].Remaining >= c.Cost
		}
	}
	return admitted, nil
}

// check returns what is wrong with decisions that were made at a time.
func (h *lateHistory) check(got []ratelimit.Decision, at time.Time, admitted bool) string {
	for _, d := range got {
		switch {
		case !at.Equal(h.exact) && !at.Equal(h.late):
			return fmt.Sprintf("decided at %v, which the clock did not show", at)
		case admitted && !d.Allowed():
			return fmt.Sprintf("%v, and the exact time admits it", d.Outcome)
		case !at.Equal(h.exact) && (d.Struck || d.RetryAfter > 0 && d.RetryAfter < maxLate):
			return fmt.Sprintf("decided by a late time: %+v", d)
		case d.RetryAfter > 0:
			h.retry = at.Add(d.RetryAfter)
		}
	}
	return ""
}

// choose chooses the charges.
func (h *lateHistory) choose() {
	h.charges = make([]ratelimit.Charge, pick(h.rand, 1, 1, 2, 3))
	for i, subject := range h.rand.Perm(3)[:len(h.charges)] {
		plan, most := pick(h.rand, h.plans...), int64(fixedwindow.MaxUnits)
		for _, q := range plan.Quotas() {
			if most = min(most, q.Limit); q.Burst() > 0 {
				most = min(most, q.Burst())
			}
		}
		h.charges[i] = ratelimit.Charge{
			Subject: string(rune('a' + subject)), Plan: plan, Cost: pick(h.rand, 1, min(2, most), 1+h.rand.Int64N(most)),
		}
	}
}

const ms = time.Millisecond
