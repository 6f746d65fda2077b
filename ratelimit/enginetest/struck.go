package enginetest

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// testStruck goes through the grace, the strikes and a ban, then one made by hand,
// and the plan that shadow mode uses.
func testStruck(e *engineTest) {
	p := strict(penalty())
	e.wantStruck("an admitted request", e.take(p), false, false)
	for range 3 {
		e.wantStruck("within the grace", e.take(p), false, false)
	}
	e.advance(2 * time.Second)
	for range 3 {
		e.wantStruck("after the grace", e.take(p), true, false)
	}
	e.wantStruck("in shadow mode, with no strikes left", e.take(p.WithoutPenalty()), false, false)
	d := e.take(p)
	e.wantStruck("one strike too many", d, true, true)
	for range 3 {
		e.wantStruck("during the ban", e.take(p), false, false)
	}
	e.now = time.Unix(d.BanEnds, 0)
	e.engine.Set(e.now)
	e.wantStruck("after the ban, in a window that has had its grace", e.take(p), true, false)

	banner, ok := e.engine.Limiter.(ratelimit.Banner)
	if !ok {
		return
	}
	if err := banner.Ban(e.Context(), "a", time.Hour); err != nil {
		e.Fatal(err)
	}
	e.wantStruck("during a ban made by hand", e.take(p), false, false)
}

// wantStruck fails unless the decision says of strikes and bans what is promised.
func (e *engineTest) wantStruck(step string, d ratelimit.Decision, struck, banStarted bool) {
	e.Helper()
	if d.Struck != struck || d.BanStarted != banStarted {
		e.Fatalf("%s: got Struck %v and BanStarted %v for a request that is %v, want %v and %v",
			step, d.Struck, d.BanStarted, d.Outcome, struck, banStarted)
	}
}
