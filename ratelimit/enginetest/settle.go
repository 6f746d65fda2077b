package enginetest

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A reservation is a charge whose cost is known only later.
type reservation struct {
	subject string
	charge  ratelimit.Decision
}

// reserve takes cost units for a subject.
func (e *engineTest) reserve(subject string, p *ratelimit.Plan, cost int64) *reservation {
	e.Helper()
	d := e.takeN(subject, p, cost)
	e.want("the request is reserved", d, allowed, d.Remaining())
	return &reservation{subject, d}
}

func (e *engineTest) settle(r *reservation, units int64) {
	e.Helper()
	if err := e.adjuster().Adjust(context.Background(), r.subject, &r.charge, units, rand.Text()); err != nil {
		e.Fatalf("Adjust to %d: %v", units, err)
	}
	r.charge.Cost = units
}

func testSettle(e *engineTest) {
	e.adjuster()
	p := plan(ratelimit.PerMinute(100), ratelimit.PerDay(1000))
	if !e.gaps.NoCalendars {
		p = plan(ratelimit.PerMinute(100), ratelimit.PerMonth(1000).From(17).In(zone("Europe/Berlin")))
	}
	used := func(step string, minute, long int64) {
		e.Helper()
		d := e.takeN("a", p, 1)
		if !d.Allowed() {
			e.Fatalf("%s: a request is %v, want %d of the minute and %d of the longer window used before it", step, d.Outcome, minute, long)
		}
		if d.States[0].Remaining != 99-minute || d.States[1].Remaining != 999-long {
			e.Fatalf("%s: %d of the minute and %d of the longer window were used before this request, want %d and %d", step,
				99-d.States[0].Remaining, 999-d.States[1].Remaining, minute, long)
		}
		e.settle(&reservation{"a", d}, 0)
	}
	r := e.reserve("a", p, 40)
	for _, units := range []int64{7, 40, 63, 63, 0, 9, 250, 5, 90} {
		e.settle(r, units)
		if units < 100 {
			used("settled", units, units)
		}
	}
	e.settle(r, 250)
	if d := e.takeN("a", p, 1); d.Outcome != limited || d.States[0].Remaining != 0 || d.States[1].Remaining != 750 {
		e.Fatalf("after a request was settled at 250 units, the next one is %v with %d of 100 and %d of 1000 left, want limited with 0 and 750",
			d.Outcome, d.States[0].Remaining, d.States[1].Remaining)
	}
	e.advance(time.Minute)
	used("in the next minute", 0, 250)
	e.settle(r, 20)
	used("settled lower in the next minute", 0, 20)
	e.settle(r, 300)
	used("settled higher in the next minute", 0, 300)
}

func testSmoothSettle(e *engineTest) {
	e.adjuster()
	p := plan(ratelimit.PerHour(3600).Smooth(50)) // one unit a second
	r := e.reserve("a", p, 40)
	e.settle(r, 10)
	e.want("settled lower", e.takeN("a", p, 1), allowed, 39)
	r, other := e.reserve("b", p, 40), e.reserve("c", p, 40)
	e.settle(r, 400)
	e.settle(other, 400)
	e.want("settled beyond the burst", e.takeN("b", p, 1), limited, 0)
	e.advance(100 * time.Second) // the 40 units are back, and 60 of the others
	e.want("most of the added units are owed", e.takeN("b", p, 1), limited, 0)
	e.settle(r, 120)
	e.want("20 of 120 units are owed after 100 seconds", e.takeN("b", p, 1), allowed, 29)
	e.settle(other, 10)
	e.want("all 10 units are back after 100 seconds", e.takeN("c", p, 1), allowed, 49)
}
