package ratelimittest

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

var errNoSubject = fmt.Errorf("%w: no subject", ratelimit.ErrInvalid)

// Reset implements [ratelimit.Resetter].
func (m *Model) Reset(_ context.Context, name string) error {
	if name == "" {
		return errNoSubject
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.subjects, name)
	return nil
}

// Refund implements [ratelimit.Refunder].
func (m *Model) Refund(_ context.Context, name string, d *ratelimit.Decision) error {
	if d == nil {
		return fmt.Errorf("%w: no decision", ratelimit.ErrInvalid)
	}
	if d.Outcome != ratelimit.Allowed {
		return nil
	}
	if err := d.Plan.Check(name, d.Cost); err != nil {
		return err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	s.expire(now)
	for i, q := range d.Plan.Quotas() {
		if q.Burst() > 0 {
			s.refundSmooth(now, q, d.Cost, d.States[i].Reset)
		} else if w := s.windows[q.Window]; w != nil && w.end.Unix() == d.States[i].Reset {
			w.used = max(w.used-d.Cost, 0)
		}
	}
	return nil
}

// AddUsage implements [ratelimit.UsageAdder].
func (m *Model) AddUsage(_ context.Context, name string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	if err := plan.Check(name, 1); err != nil {
		return err
	}
	if slices.Min(units[:]) < 0 {
		return fmt.Errorf("%w: usage of %v", ratelimit.ErrInvalid, units)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	s.expire(now)
	s.open(now, plan)
	for i, q := range plan.Quotas() {
		if q.Burst() > 0 {
			s.addSmooth(now, at, q, units[i])
			continue
		}
		w, end := s.windows[q.Window], endOf(at, plan, i)
		inside := at.Before(w.end) && !at.Before(startOf(w.end, plan, i)) // also if it began under another plan
		if units[i] == 0 || !inside && !end.After(now) {
			continue
		}
		w.used, w.begun = w.used+min(units[i], ratelimit.MaxLimit-w.used), true
		if latest := latestEnd(now, q.Window); end.After(latest) {
			end = latest
		}
		if !at.Before(w.end) {
			w.end = laterOf(w.end, end)
		}
	}
	return nil
}

// Ban implements [ratelimit.Banner].
func (m *Model) Ban(_ context.Context, name string, length time.Duration) error {
	if name == "" {
		return errNoSubject
	}
	if length <= 0 || length > ratelimit.MaxWindow {
		return fmt.Errorf("%w: ban of %v", ratelimit.ErrInvalid, length)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	s.record = s.record.at(now)
	s.banByHand(now, length)
	return nil
}

// Unban implements [ratelimit.Banner].
func (m *Model) Unban(_ context.Context, name string) (bool, error) {
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

// Bans implements [ratelimit.Banner].
func (m *Model) Bans(context.Context) ([]ratelimit.Ban, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var bans []ratelimit.Ban
	for name := range m.subjects {
		s, now := m.subject(name)
		if r := s.record.at(now); r.banEnds(now).After(now) {
			bans = append(bans, ratelimit.Ban{Subject: name, Ends: r.banEnds(now).UTC(), Level: r.level})
		}
	}
	return bans, nil
}
