package memory

import (
	"context"
	"slices"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// TakeAll implements [engine.MultiTaker]: all charges are made at one instant, or
// none. Like Take it ignores ctx. It is fastest if the subject that most requests
// share is the last one.
func (l *Limiter) TakeAll(_ context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if len(charges) > engine.MaxCharges || len(charges) != len(decisions) {
		return engine.CheckAll(charges, decisions)
	}
	var all [engine.MaxCharges]member
	group, now, known := all[:len(charges)], l.clock.coarse(), len(charges) > 0
	for i := range group {
		c, m, d := &charges[i], &group[i], &decisions[i]
		if c.Plan == nil || engine.Of(c.Plan).Len() == 0 || c.Cost < 1 || c.Subject == "" {
			return engine.CheckAll(charges, decisions)
		}
		*d = ratelimit.Decision{Plan: c.Plan, Cost: c.Cost, Time: int64(now)}
		m.hash = l.key.sum(c.Subject)
		m.table = l.tables[m.hash>>l.shift].Load()
		at, found := m.table.find(m.hash)
		m.at, known = at, known && found
		for k := range i {
			known = known && group[k].hash != m.hash
		}
	}
	if known {
		admitted, roomAt := l.admitAll(group, decisions)
		if admitted || l.refuseAll(group, decisions, roomAt) {
			return nil
		}
	}
	if err := engine.CheckAll(charges, decisions); err != nil {
		return err
	}
	return l.decideAll(group, charges, decisions)
}

// A member is one of the subjects of a group of charges.
type member struct {
	hash   uint64
	table  *table
	at     uint64 // where the account is
	meter  meter  // of the slot, before its charge was pending, or when it was inspected
	smooth bool   // the charge that is pending is of a slot with buckets
}

func (m *member) slot() slot { return m.table.slot(m.at) }

// admitAll is admit for a group: without a lock it makes all charges if every subject
// has room. The charges of all but the last one are pending until then, and the last one is
// the instant of the decision. A pending charge is made or taken back without waiting
// for anything, so that a holder of a lock that meets one waits for it. If a
// smooth quota refuses the group, it also returns from when on that has room.
func (l *Limiter) admitAll(group []member, decisions []ratelimit.Decision) (admitted bool, roomAt instant) {
	last, made := len(group)-1, 0 // made are pending
	for i := range group {
		m := &group[i]
		joint := m
		m.smooth = false
		if i == last {
			joint = nil
		}
		admitted, roomAt = l.admit(m.slot(), m.hash, &decisions[i], joint)
		if !admitted {
			break
		}
		made = min(i+1, last)
	}
	for i := range made {
		l.endPending(&group[i], &decisions[i], admitted)
	}
	return admitted, roomAt
}

// endPending makes the pending charge of a member, or takes it back.
func (l *Limiter) endPending(m *member, d *ratelimit.Decision, admitted bool) {
	after := m.meter
	switch {
	case !admitted:
		clear(d.Receipt.Others[:])
	case m.smooth:
		after = l.layouts.get(m.meter.layout()).endCharge(m.slot(), m.meter, d)
	default:
		after = m.meter.charged(d.Cost)
	}
	m.slot().setMeter(after)
}

// refuseAll is refuse for a group.
func (l *Limiter) refuseAll(group []member, decisions []ratelimit.Decision, roomAt instant) (decided bool) {
	if roomAt == 0 || roomAt.since(timeOf(&decisions[0])) >= maxLate {
		v, soon := l.inspectAll(group, decisions)
		if v != refused {
			return false
		}
		if !soon {
			return true
		}
		roomAt = 0 // not known: try immediately
	}
	now := l.clock.now()
	for i := range decisions {
		decisions[i].Time, decisions[i].Receipt.BanReason = int64(now), nil
	}
	if now >= roomAt {
		if admitted, _ := l.admitAll(group, decisions); admitted {
			return true
		}
	}
	v, _ := l.inspectAll(group, decisions)
	return v == refused
}

// inspectAll is inspect for a group. All that it read was so at one instant. It also
// reports whether a refusal ends within maxLate.
func (l *Limiter) inspectAll(group []member, decisions []ratelimit.Decision) (v verdict, soon bool) {
	v = fits
	for i := range group {
		m, d := &group[i], &decisions[i]
		m.meter = m.slot().meter()
		switch l.inspect(m.table, m.slot(), m.hash, d) {
		case unclear:
			return unclear, false
		case refused:
			v = refused
			soon = soon || d.RetryAfter < maxLate
		}
	}
	for i := range group {
		if group[i].slot().meter() != group[i].meter {
			return unclear, false
		}
	}
	return v, soon
}

// decideAll is decide for a group.
func (l *Limiter) decideAll(group []member, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	var locked [engine.MaxCharges]int
	segments := locked[:0]
	for i := range group {
		segments = append(segments, int(group[i].hash>>l.shift))
	}
	slices.Sort(segments) // all calls lock them in one order
	segments = slices.Compact(segments)
	for _, s := range segments {
		l.segments[s].mu.Lock()
	}
	defer func() {
		for _, s := range segments {
			l.segments[s].mu.Unlock()
		}
	}()
	var all [engine.MaxCharges]ruling
	rulings, now, admitted := all[:len(group)], l.clock.now(), true
	for i := range rulings {
		x, d := &rulings[i], &decisions[i]
		x.segment, x.hash, x.now = &l.segments[group[i].hash>>l.shift], group[i].hash, now
		*d = ratelimit.Decision{Plan: charges[i].Plan, Cost: charges[i].Cost}
		x.open(d)
		admitted = admitted && d.Allowed()
	}
	for i := range decisions {
		if d := &decisions[i]; !admitted && d.Allowed() {
			d.Outcome = ratelimit.Skipped
		}
	}
	if err := reserveAll(rulings, decisions); err != nil {
		return err
	}
	for i := range rulings {
		if x, d := &rulings[i], &decisions[i]; d.Outcome == ratelimit.Skipped {
			x.spare(d)
		} else {
			x.rule(charges[i].Subject, d)
		}
	}
	return nil
}

// spare ends a ruling that changes nothing.
func (x *ruling) spare(d *ratelimit.Decision) {
	d.StrikesLeft = strikesLeft(d, &x.conduct)
	engine.Complete(d)
	if x.found {
		x.unfreeze()
	}
}

// reserveAll makes room for the accounts of a group that are written. If one finds none, the
// rulings end, and no subject is charged.
func reserveAll(rulings []ruling, decisions []ratelimit.Decision) error {
	for i := range rulings {
		x, d := &rulings[i], &decisions[i]
		if d.Outcome == ratelimit.Skipped || !x.changes(d) {
			continue
		}
		if err := x.reserve(d); err != nil {
			abandon(rulings, i)
			return err
		}
		x.reserved = true
	}
	return nil
}

// abandon ends the rulings of a group for which the one with the given number had no
// room. Its slot is as it was. The others were given back what they had.
func abandon(rulings []ruling, failed int) {
	for i := range rulings {
		x := &rulings[i]
		switch {
		case i == failed || !x.found:
		case !x.reserved:
			x.unfreeze()
		case x.isNew():
			x.unplace()
		default:
			x.write(dirty) // the account was rolled, and not charged
		}
	}
}
