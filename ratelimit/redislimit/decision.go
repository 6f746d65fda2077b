package redislimit

import (
	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// decision works out what became of the request at a place among those of the
// answer: all of them were decided at the same instant, one after the other.
func (a *answer) decision(plan *ratelimit.Plan, cost int64, place int32) (d ratelimit.Decision, err error) {
	v, err := a.value()
	if err != nil {
		return d, err
	}
	d = ratelimit.Decision{Plan: plan, Cost: cost, Time: a.nanos, StrikesLeft: -1}
	penalty := plan.Penalty()
	var later int64 // units granted to requests after this one
	switch {
	case place < a.granted:
		d.Outcome = ratelimit.Allowed
		later = int64(a.granted-1-place) * cost
		d.StrikesLeft = penalty.Strikes
	case place < a.granted+a.limited:
		d.Outcome = ratelimit.Limited
		strikes, since := v.strikes, v.sinceSecond // after the last of the limited requests
		if a.letter == banStarted {
			strikes, since = penalty.Strikes, fixedwindow.Seconds(a.nanos) // before the ban cleared them
		}
		if a.letter != limitedFree {
			d.Struck = true
			strikes -= int(a.granted + a.limited - 1 - place)
		}
		d.StrikesLeft = engine.Penalty(penalty).StrikesLeft(strikes, since, fixedwindow.Seconds(a.nanos))
	case a.letter == banDeferred:
		d.Outcome = ratelimit.Limited
		d.StrikesLeft = 0
	case a.letter == skipped:
		d.Outcome = ratelimit.Skipped
		d.StrikesLeft = engine.Penalty(penalty).StrikesLeft(v.strikes, v.sinceSecond, fixedwindow.Seconds(a.nanos))
	default:
		d.Outcome = ratelimit.Banned
		d.Struck = a.letter == banStarted && place == a.granted+a.limited
		d.StrikesLeft = 0
		d.BanEnds = v.banEnds(a.nanos)
		d.Receipt.BanReason = v.reason
		if d.BanEnds == 0 {
			return d, unavailable(errReply)
		}
	}
	if penalty.Strikes == 0 {
		d.StrikesLeft = -1
	}
	v.states(&d, later)
	if d.Outcome == ratelimit.Allowed {
		v.others(&d)
	}
	engine.Complete(&d)
	return d, nil
}

// view works out what a request would meet: the answer to a peek.
func (a *answer) view(plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	v, err := a.value()
	if err != nil {
		return d, err
	}
	d = ratelimit.Decision{Plan: plan, Cost: cost, Time: a.nanos}
	fits := v.states(&d, 0)
	d.BanEnds = v.banEnds(a.nanos)
	d.StrikesLeft = engine.Penalty(plan.Penalty()).StrikesLeft(v.strikes, v.sinceSecond, fixedwindow.Seconds(a.nanos))
	switch {
	case d.BanEnds > 0:
		d.Outcome, d.Receipt.BanReason = ratelimit.Banned, v.reason
		d.StrikesLeft = min(d.StrikesLeft, 0)
	case fits:
		d.Outcome = ratelimit.Allowed
	default:
		d.Outcome = ratelimit.Limited
	}
	engine.Complete(&d)
	return d, nil
}

// refund returns the operation that gives back what so many granted requests were charged.
func (a *answer) refund(c *ratelimit.Charge, requests int32) (operation, error) {
	v, err := a.value()
	if err != nil {
		return operation{}, err
	}
	d := ratelimit.Decision{Plan: c.Plan, Cost: c.Cost * int64(requests), Time: a.nanos}
	v.states(&d, 0)
	v.others(&d)
	return adjustment(c.Subject, &d, -d.Cost, ""), nil
}

// others puts the windows of other plans that a request was charged to into d.
func (v *value) others(d *ratelimit.Decision) {
	n := 0
	for _, w := range v.windows[:v.n] {
		if w.length > 0 && engine.Of(d.Plan).Find(w.length) < 0 {
			d.Receipt.Others[n] = fixedwindow.Window{Length: seconds(w.length), End: uint32(w.endSecond)}
			n++
		}
	}
}

// states puts what each quota has left into d, and reports whether d.Cost fits
// into all of them. Of the units that v has as used, unused were used later.
func (v *value) states(d *ratelimit.Decision, unused int64) (fits bool) {
	fits = true
	i := 0
	p := engine.Of(d.Plan)
	for q := range p.Len() {
		window, limit := p.Kind(q), p.Limit(q)
		if window < 0 {
			v.smoothState(d, q, unused)
			fits = fits && d.States[q].Remaining >= d.Cost
			continue
		}
		for i < v.n && v.windows[i].length < window {
			i++
		}
		state := ratelimit.State{Remaining: limit, Reset: p.WindowEnd(q, d.Time)}
		if i < v.n && v.windows[i].length == window {
			w := v.windows[i]
			state = ratelimit.State{Remaining: max(limit-w.used+unused, 0), Reset: w.endSecond}
		}
		d.States[q] = state
		fits = fits && state.Remaining >= d.Cost
	}
	return fits
}

// banEnds returns the end of the ban in force at a time, in Unix seconds, or 0.
func (r *record) banEnds(nanos int64) int64 {
	ends := min(r.endSecond, fixedwindow.SecondsUp(nanos)+r.banSeconds)
	if r.banSeconds == 0 || r.expirySecond <= fixedwindow.Seconds(nanos) || ends <= fixedwindow.Seconds(nanos) {
		return 0
	}
	return ends
}
