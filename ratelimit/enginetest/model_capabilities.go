package enginetest

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	internal "github.com/animalstore/gatehouse/internal/plan"
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
	return nil
}

func (m *model) Adjust(_ context.Context, name string, d *ratelimit.Decision, units int64, _ string) error {
	added, err := engine.Adjustment(name, d, units)
	if added == 0 || err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	s.expire(now)
	for i, q := range d.Plan.Quotas() {
		switch end := d.States[i].Reset; {
		case end == 0:
		case q.Burst() > 0:
			s.adjustSmooth(now, q, d, units)
		default:
			s.adjust(now, d, q.Window, end, added)
		}
	}
	for _, o := range d.Receipt.Others {
		if o.Length > 0 {
			s.adjust(now, d, time.Duration(o.Length)*time.Second, int64(o.End), added)
		}
	}
	return nil
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
	why, err := internal.CheckBan(name, length, reason)
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

func (m *model) Bans(context.Context) ([]ratelimit.Ban, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var bans []ratelimit.Ban
	for name := range m.subjects {
		s, now := m.subject(name)
		if r := s.record.at(now); r.banEnds(now).After(now) {
			bans = append(bans, ratelimit.Ban{Subject: name, Ends: r.banEnds(now).UTC(), Level: r.level, Reason: *r.reason})
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
			decisions[i].Outcome = ratelimit.Spared
		} else {
			decisions[i] = m.take(c.Subject, c.Plan, c.Cost)
		}
	}
	return nil
}
