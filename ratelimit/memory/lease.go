package memory

import (
	"context"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// maxStrikes is how many refused requests start a ban under any penalty.
const maxStrikes = 1 << strikeBits

// Lease implements [engine.Leaser]. It ignores ctx. Once a subject was Reset, or replaced by
// another at the bound, nothing that subjects of its segment were charged before is given back.
func (l *Limiter) Lease(_ context.Context, subject string, plan *ratelimit.Plan, cost int64, terms engine.Terms) (d ratelimit.Decision, err error) {
	d, back, err := engine.DecideLease(subject, plan, cost, terms)
	if err != nil || d.Outcome != 0 {
		return d, err
	}
	x := ruling{subject: l.lock(subject)}
	defer x.unlock()
	x.freeze()
	x.account.expire(x.now)
	if back < 0 {
		if of, _ := terms.Back.Receipt.Generation(); of == x.generation {
			x.adjust(terms.Back, back)
		}
	}
	before := x.account
	d.Plan, d.Cost = plan, max(cost, 1)
	x.judge(&d)
	refused := min(terms.Denied, maxStrikes) + int(min(cost, 1))
	if d.Allowed() {
		share := terms.More
		for i := range engine.Of(plan).Len() {
			share = min(share, (d.States[i].Remaining-cost)/2)
		}
		d.Cost, refused = cost+share, 0
	}
	switch {
	case d.Allowed() && d.Cost > 0 || refused > 0:
		err = x.ruleLease(subject, &d, refused)
	case x.found: // no window of the plan opens
		x.account = before
		err = x.keep()
	}
	if err != nil {
		return ratelimit.Decision{}, err
	}
	if cost == 0 && (!d.Allowed() || d.Cost == 0) {
		x.view(&d, 1+min(terms.More, 1)) // of one unit left, none is a share
	}
	d.Receipt.SetGeneration(x.generation)
	return d, nil
}

// ruleLease charges the request and the share, or refuses so many requests, of which this one is
// the last.
func (x *ruling) ruleLease(name string, d *ratelimit.Decision, refused int) error {
	if x.changes(d) {
		if err := x.reserve(d); err != nil {
			return err
		}
	}
	for i := 1; i < refused && d.Outcome == ratelimit.Limited; i++ {
		engine.Complete(d)
		x.strike(d)
	}
	x.rule(name, d)
	return nil
}

// view makes d, which charged nothing, the answer to a peek of so many units.
func (x *ruling) view(d *ratelimit.Decision, units int64) {
	d.Cost = units
	for i := range engine.Of(d.Plan).Len() {
		if d.Allowed() && d.States[i].Remaining < units {
			d.Outcome = ratelimit.Limited
		}
	}
	d.StrikesLeft = strikesLeft(d, &x.conduct)
	engine.Complete(d)
	d.Cost = 0
}
