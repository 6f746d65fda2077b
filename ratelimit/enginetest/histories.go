package enginetest

import (
	"context"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	internal "github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/ratelimittest"
)

// Histories runs random histories, of the given number of steps each, on an engine and
// on the model, and fails on the first decision that differs. The same number always
// gives the same history, so that a failure can be repeated. Of four histories that follow
// each other, one is about fixed windows, one about smooth quotas, one about calendar
// windows, and one about plans of random quotas.
func Histories(t *testing.T, newEngine func(t *testing.T, start time.Time) Engine, histories, steps int) {
	runHistories(t, newEngine, Gaps{}, histories, steps)
}

func runHistories(t *testing.T, newEngine func(t *testing.T, start time.Time) Engine, gaps Gaps, histories, steps int) {
	for seed := range histories {
		finished := false
		t.Run(fmt.Sprint("history ", seed), func(t *testing.T) { // which then closes the engine
			runHistory(t, newEngine, gaps, seed, steps)
			finished = true
		})
		if !finished {
			return // it failed, or was skipped
		}
	}
}

func runHistory(t *testing.T, newEngine func(t *testing.T, start time.Time) Engine, gaps Gaps, seed, steps int) {
	start, plans, r := start, historyPlans, rand.New(rand.NewPCG(uint64(seed), 0))
	switch {
	case seed%4 == 1 && !gaps.NoSmooth:
		plans = smoothPlans
	case seed%4 == 2 && !gaps.NoCalendars:
		start, plans = calendarStarts[seed/4%len(calendarStarts)], calendarPlans
	case seed%4 == 3 && !gaps.NoSmooth && !gaps.NoCalendars:
		start, plans = randomStarts[seed/4%len(randomStarts)], randomPlans(r)
	}
	clock := ratelimittest.NewClock(start)
	tested := newEngine(t, start)
	if tested.Set == nil {
		t.Skip("skipped: the engine's clock cannot be set")
	}
	plans = slices.Clone(plans)
	r.Shuffle(len(plans), func(i, j int) { plans[i], plans[j] = plans[j], plans[i] })
	h := history{
		rand: r, engine: tested, model: NewModel(clock.Now).(*model), clock: clock, latest: start, plans: plans,
		inOrder: gaps.InOrder, loyal: seed/4%2 == 1, back: 12 * time.Second,
		far: slices.ContainsFunc(plans, func(p *ratelimit.Plan) bool { return isCalendar(p) }),
	}
	if gaps.Forgets {
		h.back = 0
	}
	for range steps {
		if diff := h.step(); diff != "" {
			t.Fatalf("the engine (+) and the model (-) differ after\n%s\n%s", h.tail(), diff)
		}
	}
}

type history struct {
	rand    *rand.Rand
	engine  Engine
	model   *model
	clock   *ratelimittest.Clock
	latest  time.Time
	plans   []*ratelimit.Plan
	inOrder bool          // several charges are made one after the other
	loyal   bool          // each subject has a plan, and rarely another one
	back    time.Duration // how far the clock steps back
	far     bool          // some windows are calendar windows, which are long
	log     []string

	// admitted are some decisions that admitted requests, to adjust them.
	admitted []admitted

	// leases are some answers of Lease, to give back what was not spent.
	leases []admitted

	// visited are the last instants that the clock was set to since something ends there.
	visited []time.Time

	// fits is when the last request that was limited will fit.
	fits time.Time
}

// admitted is a decision for subject, by the model and by the engine.
type admitted struct {
	subject       string
	model, engine ratelimit.Decision
}

// keep keeps a decision: of the earlier ones a random sample, the older the fewer.
func (h *history) keep(a admitted) {
	if len(h.admitted) < 16 {
		h.admitted = append(h.admitted, a)
		return
	}
	h.admitted[h.rand.IntN(len(h.admitted))] = a
}

// step does one random thing to the engine and to the model. It returns how
// they differ.
func (h *history) step() string {
	ctx := context.Background()
	subject := string(rune('a' + h.rand.IntN(3)))
	plan := h.plan(subject)
	switch n := h.rand.IntN(100); {
	case n < 25:
		h.move(subject)
		return ""
	case n < 29:
		return h.around(ctx, subject)
	case n < 34:
		return h.compare("peek", subject, plan, 1, func(l ratelimit.Limiter) (ratelimit.Decision, error) {
			return l.(engine.Peeker).Peek(ctx, subject, plan)
		})
	case n < 36:
		return h.reset(ctx, subject, plan)
	case n < 41 && len(h.admitted) > 0:
		return h.adjust(ctx)
	case n < 43:
		return h.overlap(ctx, subject, plan)
	case n < 45:
		return h.chargeElsewhere(ctx, subject, plan)
	case n < 48:
		return h.ban(ctx, subject, plan)
	case n < 49:
		return h.compare("unban", subject, nil, 0, func(l ratelimit.Limiter) (d ratelimit.Decision, err error) {
			unbanned, err := l.(ratelimit.Banner).Unban(ctx, subject)
			if unbanned {
				d.Outcome = ratelimit.Banned
			}
			return d, err
		})
	case n < 50:
		return h.compareBans(ctx)
	case n < 51 && h.engine.Restart != nil:
		h.log = append(h.log, "restart")
		h.engine.Limiter, h.leases = h.engine.Restart(), nil
		// What was given back to smooth quotas is known for charges of one process.
		h.admitted = slices.DeleteFunc(h.admitted, func(a admitted) bool { return (*internal.Plan)(a.model.Plan).Smooth() })
		for _, s := range h.model.subjects {
			clear(s.returns)
		}
		return ""
	case n < 60:
		return h.compareGroup(ctx)
	case n < 70:
		return h.lease(ctx, subject, plan)
	case n < 75:
		return h.insist(ctx, subject, plan)
	}
	return h.take(ctx, subject, plan)
}

func (h *history) take(ctx context.Context, subject string, plan *ratelimit.Plan) string {
	cost := h.cost(plan)
	return h.compare("take", subject, plan, cost, func(l ratelimit.Limiter) (ratelimit.Decision, error) {
		return l.Take(ctx, subject, plan, cost)
	})
}

// insist has a client send requests until it is banned, or nearly, and often again after that.
func (h *history) insist(ctx context.Context, subject string, plan *ratelimit.Plan) (diff string) {
	for range 2 + h.rand.IntN(14) {
		now := h.clock.Now()
		switch s, _ := h.model.subject(subject); {
		case s.until.After(now) && s.until.Before(now.Add(5*time.Minute)):
			h.set(s.until.UTC())
		case h.rand.IntN(3) == 0:
			h.set(now.Add(time.Duration(h.rand.IntN(3000)) * time.Millisecond))
		}
		if diff = h.take(ctx, subject, plan); diff != "" {
			break
		}
	}
	return diff
}

// reset forgets a subject, and then often gives back what it was charged before.
func (h *history) reset(ctx context.Context, subject string, plan *ratelimit.Plan) string {
	// An engine need not give back what other subjects were charged.
	h.leases = slices.DeleteFunc(h.leases, func(a admitted) bool { return a.subject != subject })
	diff := h.compare("reset", subject, nil, 0, func(l ratelimit.Limiter) (ratelimit.Decision, error) {
		return ratelimit.Decision{}, l.(interface {
			Reset(ctx context.Context, subject string) error
		}).Reset(ctx, subject)
	})
	for range h.rand.IntN(4) {
		if diff == "" {
			diff = h.lease(ctx, subject, plan)
		}
	}
	return diff
}

// around has a subject do something just before and after the end of what it has, in any order.
func (h *history) around(ctx context.Context, subject string) (diff string) {
	end := h.end(subject)
	for range 2 + h.rand.IntN(3) {
		if !end.IsZero() {
			h.set(end.Add(oneOf(h.rand, beside...)))
		}
		switch plan := h.plan(subject); h.rand.IntN(6) {
		case 0:
			diff = h.lease(ctx, subject, plan)
		case 1:
			diff = h.compareGroup(ctx)
		case 2:
			if len(h.admitted) > 0 {
				diff = h.adjust(ctx)
			}
		default:
			diff = h.take(ctx, subject, plan)
		}
		if diff != "" {
			break
		}
	}
	return diff
}

// beside are times between the end of something and a moment before or after it.
var beside = []time.Duration{-time.Second, -time.Millisecond, -time.Microsecond, 0, 0, time.Microsecond, time.Millisecond, 999 * time.Millisecond, time.Second}

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

// ban bans a subject by hand, often when something of it ends, such as the memory of other bans.
func (h *history) ban(ctx context.Context, subject string, plan *ratelimit.Plan) string {
	if end := h.end(subject); h.rand.IntN(2) == 0 && !end.IsZero() {
		h.set(end.Add(oneOf(h.rand, beside...)))
	}
	length := time.Duration(1+h.rand.IntN(30_000)) * time.Millisecond
	if forgive := plan.Penalty().Forgive; h.rand.IntN(2) == 0 { // beyond the time at which a level is forgiven
		length = min(length+time.Duration(1+h.rand.IntN(3))*forgive, fixedwindow.MaxLength)
	}
	reason := oneOf(h.rand, "", "by hand", "strikes", "spam", strings.Repeat("é", 100))
	diff := h.compare("ban for "+length.String()+", "+reason+",", subject, nil, 0, func(l ratelimit.Limiter) (ratelimit.Decision, error) {
		return ratelimit.Decision{}, l.(ratelimit.Banner).Ban(ctx, subject, length, reason)
	})
	if diff == "" && h.rand.IntN(2) == 0 {
		diff = h.compareBans(ctx)
	}
	return diff
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

// adjust makes an earlier request cost other units: mostly nothing, less or more.
func (h *history) adjust(ctx context.Context) string {
	a := &h.admitted[h.rand.IntN(len(h.admitted))]
	cost := a.model.Cost
	return h.adjustTo(ctx, a, oneOf(h.rand, 0, 0, h.rand.Int64N(cost+1), cost+h.cost(a.model.Plan), min(cost, math.MaxInt64/10)*10, 1<<32, math.MaxInt64))
}

// overlap makes several requests of a subject, which end and are given back in any order.
func (h *history) overlap(ctx context.Context, subject string, plan *ratelimit.Plan) (diff string) {
	before := h.admitted
	h.admitted = nil
	for k := 0; k < 16 && diff == ""; k++ {
		switch n := h.rand.IntN(5); {
		case n < 1:
			h.move(subject)
		case n < 3 || len(h.admitted) == 0:
			diff = h.take(ctx, subject, plan)
		default:
			a := &h.admitted[h.rand.IntN(len(h.admitted))]
			diff = h.adjustTo(ctx, a, h.rand.Int64N(a.model.Cost+1))
		}
	}
	h.admitted = append(h.admitted, before...)
	h.admitted = h.admitted[:min(len(h.admitted), 16)]
	return diff
}

func (h *history) adjustTo(ctx context.Context, a *admitted, units int64) string {
	cost := a.model.Cost
	what, id := fmt.Sprint("adjust to ", units, ", from"), h.id()
	diff := h.compare(what, a.subject, a.model.Plan, cost, func(l ratelimit.Limiter) (ratelimit.Decision, error) {
		if l == ratelimit.Limiter(h.model) {
			return ratelimit.Decision{}, h.model.Adjust(ctx, a.subject, &a.model, units, id)
		}
		return ratelimit.Decision{}, h.adjustEngine(ctx, a.subject, &a.engine, units, id)
	})
	if h.rand.IntN(8) > 0 { // otherwise it is adjusted again from the same cost, which is a mistake
		a.model.Cost, a.engine.Cost = min(units, fixedwindow.MaxUnits), min(units, fixedwindow.MaxUnits)
	}
	return diff
}

// lease charges a share, beside a request or alone, and often gives back an earlier one.
func (h *history) lease(ctx context.Context, subject string, plan *ratelimit.Plan) string {
	if _, ok := h.engine.Limiter.(engine.Leaser); !ok {
		return ""
	}
	cost, terms := oneOf(h.rand, 0, h.cost(plan), h.cost(plan)), engine.Terms{More: oneOf(h.rand, 0, h.cost(plan), 8*h.cost(plan), math.MaxInt64)}
	if (*internal.Plan)(plan).Smooth() && h.rand.IntN(8) > 0 {
		terms.More = 0
	}
	if h.rand.IntN(2) == 0 {
		terms.Denied = oneOf(h.rand, 1, 2, 3, 100)
	}
	var back, kept admitted
	if i := h.rand.IntN(len(h.leases) + 1); i < len(h.leases) {
		back = h.leases[i]
		subject = back.subject
		back.model.Cost -= h.rand.Int64N(back.model.Cost + 1)
		back.engine.Cost = back.model.Cost
		if h.rand.IntN(8) > 0 { // otherwise it may be given back again, which is a mistake
			h.leases = slices.Delete(h.leases, i, i+1)
		}
	}
	what := fmt.Sprint("lease ", terms.More, " more, ", terms.Denied, " denied, ", back.model.Cost, " back of ", back.model.Plan, ":")
	diff := h.compare(what, subject, plan, cost, func(l ratelimit.Limiter) (ratelimit.Decision, error) {
		of := func(a *admitted) *ratelimit.Decision {
			if l == ratelimit.Limiter(h.model) {
				return &a.model
			}
			return &a.engine
		}
		mine := terms
		if back.subject != "" {
			mine.Back = of(&back)
		}
		d, err := l.(engine.Leaser).Lease(ctx, subject, plan, cost, mine)
		*of(&kept) = d
		d.Receipt.SetGeneration(0) // each engine counts them in its own way
		return d, err
	})
	if kept.subject = subject; kept.model.Cost > 0 && kept.model.Allowed() {
		h.leases = append(h.leases[max(len(h.leases)-7, 0):], kept)
		h.keep(kept)
	}
	return diff
}

// chargeElsewhere adds the units of a charge that another engine has made, by its own clock.
func (h *history) chargeElsewhere(ctx context.Context, subject string, plan *ratelimit.Plan) string {
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
	what, id := fmt.Sprint("charged ", units, " elsewhere at ", at.Format(time.DateTime), " to windows ", d.States), h.id()
	return h.compare(what, subject, plan, 0, func(l ratelimit.Limiter) (ratelimit.Decision, error) {
		if l == ratelimit.Limiter(h.model) {
			return ratelimit.Decision{}, h.model.Adjust(ctx, subject, &d, units, id)
		}
		return ratelimit.Decision{}, h.adjustEngine(ctx, subject, &d, units, id)
	})
}

func (h *history) id() string { return fmt.Sprint(h.rand.Uint64()) }

// adjustEngine makes an adjustment, and sometimes repeats it, as if the answer was lost.
func (h *history) adjustEngine(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	err := h.engine.Limiter.(engine.Adjuster).Adjust(ctx, subject, d, units, id)
	if h.rand.IntN(3) == 0 && h.engine.Remembers && err == nil {
		err = h.engine.Limiter.(engine.Adjuster).Adjust(ctx, subject, d, units, id)
	}
	return err
}

// move sets both clocks: mostly forwards, by a little or by much, sometimes back by less than
// a minute, and often to just before or after the moment at which something ends.
func (h *history) move(subject string) {
	now := h.clock.Now()
	switch h.rand.IntN(12) {
	case 0:
		now = now.Add(time.Duration(h.rand.IntN(100)) * time.Second)
	case 1:
		now = now.Add(-time.Duration(h.rand.IntN(12_000)) * time.Millisecond)
	case 2:
		now = now.Add(time.Duration(h.rand.IntN(20)) * time.Hour / 10)
	case 3: // strikes decay by whole seconds, and the grace is two seconds
		now = now.Truncate(time.Second).Add(time.Duration(h.rand.IntN(10)) * time.Second)
	case 4, 5, 6:
		if end := h.end(subject); !end.IsZero() {
			now = end.Add(oneOf(h.rand, beside...))
		}
	default:
		now = now.Add(time.Duration(h.rand.IntN(3000)) * time.Millisecond)
	}
	h.set(now)
}

// set sets both clocks to a time, but no further back.
func (h *history) set(now time.Time) {
	if oldest := h.latest.Add(-h.back); now.Before(oldest) {
		now = oldest
	}
	if now.After(h.latest) {
		h.latest = now
	}
	h.clock.Set(now)
	h.engine.Set(now)
	h.log = append(h.log, "clock "+now.Format("2006-01-02 15:04:05.000000"))
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

func (h *history) compare(what, subject string, plan *ratelimit.Plan, cost int64, do func(ratelimit.Limiter) (ratelimit.Decision, error)) string {
	h.log = append(h.log, fmt.Sprint(what, " ", subject, " ", cost, " ", plan))
	want, wantErr := do(h.model)
	got, err := do(h.engine.Limiter)
	if (err == nil) != (wantErr == nil) {
		return fmt.Sprintf("error: model %v, engine %v", wantErr, err)
	}
	if what == "take" && want.Allowed() {
		h.keep(admitted{subject, want, got})
	}
	if want.RetryAfter > 0 {
		h.fits = h.clock.Now().Add(want.RetryAfter)
	}
	if want == got { // far sooner than Diff
		return ""
	}
	return cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b }))
}

func (h *history) compareBans(ctx context.Context) string {
	h.log = append(h.log, "list bans")
	want, _ := h.model.Bans(ctx)
	got, err := h.engine.Limiter.(ratelimit.Banner).Bans(ctx)
	if err != nil {
		return err.Error()
	}
	for _, bans := range [][]ratelimit.Ban{want, got} {
		slices.SortFunc(bans, func(a, b ratelimit.Ban) int { return strings.Compare(a.Subject, b.Subject) })
	}
	return cmp.Diff(want, got)
}

func (h *history) tail() string { return strings.Join(h.log[max(len(h.log)-25, 0):], "\n") }

// compareGroup charges some of the subjects together.
func (h *history) compareGroup(ctx context.Context) string {
	if _, ok := h.engine.Limiter.(engine.MultiTaker); !ok {
		return ""
	}
	charges := make([]ratelimit.Charge, 1+h.rand.IntN(3))
	text := "take all"
	for i, subject := range h.rand.Perm(3)[:len(charges)] {
		name := string(rune('a' + subject))
		plan := h.plan(name)
		charges[i] = ratelimit.Charge{Subject: name, Plan: plan, Cost: h.cost(plan)}
		text += fmt.Sprint(", ", name, " ", charges[i].Cost, " ", plan)
	}
	h.log = append(h.log, text)
	want, got := make([]ratelimit.Decision, len(charges)), make([]ratelimit.Decision, len(charges))
	take := ratelimit.TakeAll
	if h.inOrder {
		take = engine.TakeInOrder
	}
	wantErr, err := take(ctx, h.model, charges, want), ratelimit.TakeAll(ctx, h.engine.Limiter, charges, got)
	if (err == nil) != (wantErr == nil) {
		return fmt.Sprintf("error: model %v, engine %v", wantErr, err)
	}
	for i := range want {
		if want[i].Allowed() {
			h.keep(admitted{charges[i].Subject, want[i], got[i]})
		}
	}
	return cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b }))
}
