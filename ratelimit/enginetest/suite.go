package enginetest

import (
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/animalstore/gatehouse/internal/race"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// An Engine is the engine under test.
type Engine struct {
	ratelimit.Limiter

	// Set moves the engine's clock, forwards or backwards. Nil means that the
	// engine's clock cannot be moved. Tests that need it are then skipped, and
	// one of the others counts in the longest possible window.
	Set func(t time.Time)

	// Restart returns an engine that continues from the state which this one
	// saves now. Nil means that the engine cannot be restarted.
	Restart func() ratelimit.Limiter

	// Remembers says that the engine remembers the ids of adjustments; see
	// [engine.Adjuster].
	Remembers bool
}

// Gaps are the promises that an engine does not make, as its documentation says. The
// zero Gaps belong to an engine that makes all of them.
type Gaps struct {
	OneQuota       bool // a plan with more than one quota is refused
	RollingWindows bool // windows are not aligned to the UTC clock, or there are none
	ChargesDenials bool // a denied request is charged
	UsagePerPlan   bool // a change of the plan of a subject can forget its usage
	NoCalendars    bool // a plan with calendar windows, months or days in zones, is refused
	NoSmooth       bool // a plan with a smooth quota is refused
	InOrder        bool // several charges are made one after the other, as engine.TakeInOrder does
	NoPenalties    bool // the penalty of a plan is ignored: there are no strikes, and no request starts a ban
	Forgets        bool // windows that have ended are forgotten before the next call about their subject
}

// start is the time at which a test begins: within a second, a minute and a day.
var start = time.Date(2026, time.March, 1, 12, 0, 30, 250_000_000, time.UTC)

// Run tests the promises that every engine makes, except those that gaps excludes. newEngine
// returns an engine without subjects for one test. If its clock can be set, it stands at start.
// A failed test says which promise the engine broke. Under the race detector, which makes tests
// slow, Run compares the engine with the model in fewer [Histories].
func Run(t *testing.T, newEngine func(t *testing.T, start time.Time) Engine, gaps Gaps) {
	for _, promise := range slices.Concat(promises, adjustments, leases, holds) {
		t.Run(promise.name, func(t *testing.T) {
			if promise.excluded != nil && promise.excluded(gaps) {
				t.Skip("skipped: the engine declares that it cannot do this")
			}
			e := &engineTest{T: t, gaps: gaps, engine: newEngine(t, start), now: start}
			if promise.needsClock && e.engine.Set == nil {
				t.Skip("skipped: the engine's clock cannot be set")
			}
			defer func() {
				if t.Failed() {
					t.Logf("the engine breaks this promise: %s", promise.text)
				}
			}()
			promise.test(e)
		})
	}
	if gaps == (Gaps{NoCalendars: gaps.NoCalendars, NoSmooth: gaps.NoSmooth, InOrder: gaps.InOrder, Forgets: gaps.Forgets}) {
		t.Run("agrees with the model", func(t *testing.T) { runHistories(t, newEngine, gaps, race.Fewer(150), 400) })
	}
}

// An engineTest is one test with its engine.
type engineTest struct {
	*testing.T
	gaps   Gaps
	engine Engine
	now    time.Time
}

// advance moves the clock.
func (e *engineTest) advance(d time.Duration) {
	e.now = e.now.Add(d)
	e.engine.Set(e.now)
}

// set sets the clock.
func (e *engineTest) set(t time.Time) { e.advance(t.Sub(e.now)) }

// take takes one unit for the subject "a".
func (e *engineTest) take(plan *ratelimit.Plan) ratelimit.Decision { return e.takeN("a", plan, 1) }

func (e *engineTest) takeN(subject string, plan *ratelimit.Plan, cost int64) ratelimit.Decision {
	e.Helper()
	return e.takeFrom(e.engine, subject, plan, cost)
}

func (e *engineTest) takeFrom(l ratelimit.Limiter, subject string, plan *ratelimit.Plan, cost int64) ratelimit.Decision {
	e.Helper()
	d, err := l.Take(ctx, subject, plan, cost)
	if err != nil {
		e.Fatalf("Take(%q, %v, %d): %v", subject, plan, cost, err)
	}
	e.check(&d)
	return d
}

// adjust makes a charge cost so many units.
func (e *engineTest) adjust(subject string, d *ratelimit.Decision, units int64, id string) {
	e.Helper()
	if err := capability[engine.Adjuster](e).Adjust(ctx, subject, d, units, id); err != nil {
		e.Fatalf("Adjust(%q, %v, %d, %q): %v", subject, d.Plan, units, id, err)
	}
}

// check checks what every decision must satisfy.
func (e *engineTest) check(d *ratelimit.Decision) {
	e.Helper()
	at := time.Unix(0, d.Time)
	for i := range engine.Of(d.Plan).Len() {
		s, limit := d.States[i], engine.Of(d.Plan).Limit(i)
		if s.Remaining < 0 || s.Remaining > limit {
			e.Errorf("Remaining must be from 0 to the limit %d, got %d", limit, s.Remaining)
		}
		if s.Reset < at.Unix() {
			e.Errorf("Reset must not be before the decision at %d, got %d", at.Unix(), s.Reset)
		}
	}
	if d.Allowed() != (d.RetryAfter == 0) || d.RetryAfter < 0 {
		e.Errorf("RetryAfter must be 0 for an allowed request and positive for a denied one, got %v for one that is %v", d.RetryAfter, d.Outcome)
	}
	if is := d.Outcome == ratelimit.Banned; is != (d.BanEnds > 0) || is != (d.BanReason() != "") {
		e.Errorf("BanEnds and BanReason must be set during a ban and only then, got %d and %q for a request that is %v", d.BanEnds, d.BanReason(), d.Outcome)
	}
	if d.Struck && (d.Allowed() || d.Plan.Penalty().Strikes == 0 || e.gaps.NoPenalties) {
		e.Errorf("Struck must be set only for a denial under a plan with strikes, got it for a request that is %v under %v", d.Outcome, d.Plan)
	}
	if d.Reset() < d.BanEnds {
		e.Errorf("Reset must not be before the end of the ban at %d, got %d", d.BanEnds, d.Reset())
	}
}

// want fails unless the outcome and the rest of the applicable quota are as promised. The
// step says what the decision is about.
func (e *engineTest) want(step string, d ratelimit.Decision, outcome ratelimit.Outcome, remaining int64) {
	e.Helper()
	if d.Outcome != outcome || d.Remaining() != remaining {
		e.Fatalf("%s: got %v with %d remaining, want %v with %d", step, d.Outcome, d.Remaining(), outcome, remaining)
	}
}

// wantInvalid fails unless an error wraps ErrInvalid and the one that is wanted.
func (e *engineTest) wantInvalid(what string, err, want error) {
	e.Helper()
	if !errors.Is(err, want) || !errors.Is(err, ratelimit.ErrInvalid) {
		e.Errorf("%s: got error %v, want one that wraps %q and ErrInvalid", what, err, want)
	}
}

func plan(quotas ...ratelimit.Quota) *ratelimit.Plan {
	return ratelimit.MustPlan("test", ratelimit.Penalty{}, quotas...)
}
