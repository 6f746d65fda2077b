package enginetest

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/animalstore/gatehouse/ratelimit"
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
		loyal: seed/4%2 == 1, back: 12 * time.Second, far: slices.ContainsFunc(plans, isCalendar), inOrder: gaps.InOrder,
	}
	if gaps.Forgets {
		h.back = 0
	}
	for range steps {
		if diff := h.step(); diff != "" {
			t.Fatalf("the engine (+) and the model (-) differ after\n%s\n%s", strings.Join(h.log[max(len(h.log)-25, 0):], "\n"), diff)
		}
	}
}

var ctx = context.Background()

// A history is what has been done to the engine and to the model, and what the next steps
// need to know of it.
type history struct {
	rand   *rand.Rand
	engine Engine
	model  *model
	clock  *ratelimittest.Clock
	latest time.Time
	plans  []*ratelimit.Plan
	loyal  bool          // each subject has a plan, and rarely another one
	back   time.Duration // how far the clock steps back
	far    bool          // some windows are calendar windows, which are long
	// inOrder says that the engine makes several charges one after the other.
	inOrder bool
	log     []string

	admitted []charge    // some, to adjust them
	leases   []charge    // some, to give back what was not spent
	visited  []time.Time // the last instants that the clock was set to since something ends there
	fits     time.Time   // when the last request that was limited will fit
}

// A charge is a decision about subject that admitted it, by the model and by the engine.
type charge struct {
	subject       string
	model, engine ratelimit.Decision
}

// of returns the decision of the model or of the engine.
func (h *history) of(c *charge, l ratelimit.Limiter) *ratelimit.Decision {
	if l == ratelimit.Limiter(h.model) {
		return &c.model
	}
	return &c.engine
}

// keep keeps a charge: of the earlier ones a random sample, the older the fewer.
func (h *history) keep(c charge) {
	if len(h.admitted) < 16 {
		h.admitted = append(h.admitted, c)
		return
	}
	h.admitted[h.rand.IntN(len(h.admitted))] = c
}

// agree has the model and the engine do the same. It returns how their answers differ, which
// must be comparable.
func (h *history) agree(what string, do func(ratelimit.Limiter) (answer any, err error)) string {
	h.log = append(h.log, what)
	want, wantErr := do(h.model)
	got, err := do(h.engine.Limiter)
	if (err == nil) != (wantErr == nil) {
		return fmt.Sprintf("error: model %v, engine %v", wantErr, err)
	}
	if d, ok := want.(ratelimit.Decision); ok && d.RetryAfter > 0 {
		h.fits = h.clock.Now().Add(d.RetryAfter)
	}
	if want == got { // far sooner than Diff
		return ""
	}
	return cmp.Diff(want, got, cmp.Comparer(func(a, b *ratelimit.Plan) bool { return a == b }))
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
