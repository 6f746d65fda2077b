package enginetest

import (
	"crypto/rand"
	"errors"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var holds = []promise{
	{name: "charges what it holds", test: testHold,
		text: "a held charge counts like any other, and is what Adjust with its id makes it, beyond a limit and down to nothing"},
	{name: "holds all charges of a group or none", test: testHoldAll,
		text: "what TakeAll of a Holder charges is held for each subject, and a refused group holds and charges nothing"},
	{name: "refuses holds without an id or a timeout", test: testWrongHolds,
		text: "Take and TakeAll of a Holder return ErrInvalid without an id, or with a timeout that is not from 1s to 1h"},
}

func testWrongHolds(e *engineTest) {
	holder, p := capability[engine.Holder](e), lasting(100)
	for id, timeouts := range map[string][]time.Duration{"": {time.Minute}, "id": {-1, 0, time.Second - 1, time.Hour + 1}} {
		for _, timeout := range timeouts {
			view := holder.Hold(id, timeout)
			_, err := view.Take(ctx, "a", p, 1)
			err2 := ratelimit.TakeAll(ctx, view, []ratelimit.Charge{{Subject: "a", Plan: p, Cost: 1}, {Subject: "b", Plan: p, Cost: 1}}, make([]ratelimit.Decision, 2))
			if !errors.Is(err, ratelimit.ErrInvalid) || !errors.Is(err2, ratelimit.ErrInvalid) {
				e.Errorf("Hold(%q, %v): Take returns %v, and TakeAll %v; both must wrap ErrInvalid", id, timeout, err, err2)
			}
		}
	}
	e.want("nothing was charged", e.take(p), allowed, 99)
}

// lasting is a plan whose window does not end during a test.
func lasting(limit int64) *ratelimit.Plan {
	return plan(ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength})
}

func testHold(e *engineTest) {
	holder, p, used := capability[engine.Holder](e), lasting(100), int64(0)
	for _, units := range []int64{10, 25, 3, 0} {
		id := rand.Text()
		d := e.takeFrom(holder.Hold(id, time.Hour), "a", p, 10)
		e.want("a held charge", d, allowed, 100-used-10)
		e.adjust("a", &d, units, id)
		used += units + 1
		e.want("after it was settled", e.take(p), allowed, 100-used)
	}
	e.want("a held charge that does not fit", e.takeFrom(holder.Hold(rand.Text(), time.Hour), "a", p, 59), limited, 58)
}

func testHoldAll(e *engineTest) {
	holder, p := capability[engine.Holder](e), lasting(100)
	capability[engine.MultiTaker](e)
	e.takeN("b", p, 60)
	for _, c := range []struct{ cost, a, b int64 }{{30, 70, 10}, {30, 70, 10}, {10, 60, 0}} {
		id, decisions := rand.Text(), make([]ratelimit.Decision, 2)
		charges := []ratelimit.Charge{{Subject: "a", Plan: p, Cost: c.cost}, {Subject: "b", Plan: p, Cost: c.cost}}
		if err := ratelimit.TakeAll(ctx, holder.Hold(id, time.Hour), charges, decisions); err != nil {
			e.Fatal(err)
		}
		for i := range charges {
			e.adjust(charges[i].Subject, &decisions[i], c.cost, id)
		}
		for subject, left := range map[string]int64{"a": c.a, "b": c.b} {
			if d, err := capability[engine.Peeker](e).Peek(ctx, subject, p); err != nil || d.Remaining() != left {
				e.Errorf("after charges of %d units %d are left of %s (%v), want %d", c.cost, d.Remaining(), subject, err, left)
			}
		}
	}
}
