package enginetest

import (
	"math"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var adjustments = []promise{
	{
		name: "refuses wrong adjustments", test: testWrongAdjustments,
		text: "Adjust with a wrong decision, subject or number of units is an error that wraps ErrInvalid, " +
			"and changes nothing, as does Adjust of a denial",
	},
	{
		name: "counts an id once", test: testAdjustOnce,
		text: "Adjust with an id that was used for the subject changes nothing, and without an id each call counts",
	},
}

func testWrongAdjustments(e *engineTest) {
	adjuster, p := capability[engine.Adjuster](e), plan(ratelimit.PerDay(10))
	d := e.takeN("a", p, 3)
	for what, c := range map[string]struct {
		subject string
		d       *ratelimit.Decision
		units   int64
	}{
		"no decision":         {"a", nil, 0},
		"no subject":          {"", &d, 0},
		"no plan":             {"a", &ratelimit.Decision{Outcome: allowed, Cost: 1}, 0},
		"negative units":      {"a", &d, -1},
		"a cost less than 0":  {"a", &ratelimit.Decision{Outcome: allowed, Plan: p, Cost: -1, States: d.States}, 0},
		"the most negative":   {"a", &d, math.MinInt64},
		"a cost that is that": {"a", &ratelimit.Decision{Outcome: allowed, Plan: p, Cost: math.MinInt64, States: d.States}, math.MaxInt64},
	} {
		e.wantInvalid("Adjust with "+what, adjuster.Adjust(ctx, c.subject, c.d, c.units, ""), ratelimit.ErrInvalid)
	}
	denied := e.takeN("a", p, 8)
	e.adjust("a", &denied, 0, "")
	e.want("wrong adjustments change nothing, and a denial gives nothing back", e.take(p), allowed, 6)
}

func testAdjustOnce(e *engineTest) {
	adjuster := capability[engine.Adjuster](e)
	if !e.engine.Remembers {
		e.Skip("skipped: the engine remembers no ids")
	}
	p := plan(ratelimit.Quota{Limit: 1000, Window: fixedwindow.MaxLength})
	now := time.Unix(0, e.take(p).Time)
	add := func(subject, id string) {
		if err := engine.AddUsage(ctx, adjuster, subject, p, 10, now, id); err != nil {
			e.Fatal(err)
		}
	}
	for _, id := range []string{"one", "one", "two", "one", "two", "", ""} {
		add("a", id)
	}
	add("b", "one")
	e.want("two ids, and two calls without one", e.takeN("a", p, 1), allowed, 958)
	e.want("another subject has ids of its own", e.takeN("b", p, 1), allowed, 989)
}
