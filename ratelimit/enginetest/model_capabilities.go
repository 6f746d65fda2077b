package enginetest

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var errNoSubject = fmt.Errorf("%w: no subject", ratelimit.ErrInvalid)

func (m *model) Reset(_ context.Context, name string) error {
	if name == "" {
		return errNoSubject
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.subjects, name)
	m.resets[name]++
	return nil
}

func (m *model) Adjust(_ context.Context, name string, d *ratelimit.Decision, units int64, _ string) error {
	added, err := engine.Adjustment(name, d, units)
	if added == 0 || err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.adjust(name, d, units, added)
	return nil
}

// adjust is Adjust for a valid call, under the lock.
func (m *model) adjust(name string, d *ratelimit.Decision, units, added int64) {
	s, now := m.subject(name)
	s.expire(now)
	for i, q := range d.Plan.Quotas() {
		switch end := d.States[i].Reset; {
		case end == 0:
		case q.Burst() > 0:
			s.adjustSmooth(now, q, i, d, units)
		default:
			s.adjust(now, d, q.Window, end, added)
		}
	}
	for _, o := range d.Receipt.Others {
		if o.Length > 0 {
			s.adjust(now, d, time.Duration(o.Length)*time.Second, int64(o.End), added)
		}
	}
}

func (m *model) Lease(_ context.Context, name string, plan *ratelimit.Plan, cost int64, terms engine.Terms) (d ratelimit.Decision, err error) {
	d, back, err := engine.DecideLease(name, plan, cost, terms)
	if err != nil || d.Outcome != 0 {
		return d, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	s.expire(now)
	if back < 0 {
		if of, _ := terms.Back.Receipt.Generation(); of == m.resets[name] {
			m.adjust(name, terms.Back, 0, back)
		}
	}
	requests := min(terms.Denied, 20_000) + int(min(cost, 1)) // no penalty allows so many
	defer func() { d.Receipt.SetGeneration(m.resets[name]) }()
	if d = m.peek(name, plan, max(cost, 1)); d.Allowed() {
		requests = 0
		share := terms.More
		for i := range plan.Quotas() {
			share = min(share, (d.States[i].Remaining-cost)/2)
		}
		if cost+share > 0 {
			return m.take(name, plan, cost+share), nil
		}
	}
	struck := false
	for range requests { // all of them are strikes, up to a ban, or none
		d = m.take(name, plan, max(cost, 1))
		struck = struck || d.Struck
	}
	if cost == 0 {
		d = m.peek(name, plan, 1+min(terms.More, 1)) // of one unit left, none is a share
		d.Cost = 0
	}
	d.Struck = struck
	return d, nil
}

// adjust adds the units of a charge to the window that ends with it, or gives them back.
func (s *subject) adjust(now time.Time, d *ratelimit.Decision, length time.Duration, end, units int64) {
	w, ends, latest := s.windows[length], time.Unix(end, 0), latestEnd(now, length)
	if !ends.After(now) {
		return // it is over
	}
	if w != nil && !fixedwindow.IsCalendar(length) && w.end.After(ends) {
		return // it was opened later
	}
	if w != nil && units < 0 && fixedwindow.IsCalendar(length) && w.end.Unix()-end >= fixedwindow.Apart(length) {
		return // so was this month or day
	}
	if w == nil && units > 0 {
		w = s.insert(d.Plan, length, &usage{end: earlierOf(ends, latest)})
	}
	if units > 0 && !time.Unix(0, d.Time).Before(w.end) {
		w.end = earlierOf(ends, latest)
	}
	if w != nil {
		w.used, w.begun = min(max(w.used+units, 0), fixedwindow.MaxUnits), true
	}
}

func (m *model) Ban(_ context.Context, name string, length time.Duration, reason string) error {
	why, err := engine.CheckBan(name, length, reason)
	if err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	s.record = s.record.at(now)
	s.banByHand(now, length, why)
	return nil
}

func (m *model) Unban(_ context.Context, name string) (bool, error) {
	if name == "" {
		return false, errNoSubject
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	banned := s.record.at(now).banEnds(now).After(now)
	s.record = record{}
	return banned, nil
}

func (m *model) Bans(context.Context) ([]engine.Ban, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var bans []engine.Ban
	for name := range m.subjects {
		s, now := m.subject(name)
		if r := s.record.at(now); r.banEnds(now).After(now) {
			bans = append(bans, engine.Ban{Subject: name, Ends: r.banEnds(now).UTC(), Level: r.level, Reason: r.reason})
		}
	}
	return bans, nil
}

func (m *model) TakeAll(_ context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := engine.CheckAll(charges, decisions); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	refused := false
	for i, c := range charges {
		decisions[i] = m.peek(c.Subject, c.Plan, c.Cost)
		refused = refused || !decisions[i].Allowed()
	}
	for i, c := range charges {
		if refused && decisions[i].Allowed() {
			decisions[i].Outcome = ratelimit.Skipped
		} else {
			decisions[i] = m.take(c.Subject, c.Plan, c.Cost)
		}
	}
	return nil
}

// ends returns when windows, buckets and bans of a subject end and, under a penalty, its grace,
// a strike, and what it is not forgiven yet; and from when on strikes decay.
func (m *model) ends(name string, p ratelimit.Penalty) []time.Time {
	s, _ := m.subject(name)
	ends := []time.Time{s.first.Add(p.Grace), s.since, s.since.Add(p.Decay), s.until, s.until.Add(p.Forgive), s.expires}
	for _, kind := range slices.Sorted(maps.Keys(s.windows)) {
		second, rounded := s.windows[kind].ends()
		ends = append(ends, time.Unix(second, -int64(rounded)*int64(time.Second)>>32))
	}
	for i := range ends {
		ends[i] = ends[i].UTC()
	}
	return ends
}
