package memory

import "github.com/animalstore/gatehouse/ratelimit"

// decide settles under the lock, and by the exact time, whatever the fast path
// leaves open. It fills d.
func (l *Limiter) decide(s *segment, h uint64, subject string, d *ratelimit.Decision) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	d.Time = l.clock.now()
	e := l.take(s, h)
	e.roll(d.Time, d.Plan)
	r, hasRecord := s.record(h, d.Time)
	before := r
	r.cut(d.Time)
	fits := e.states(d)

	d.BanEnds = r.banEnds(d.Time)
	switch {
	case d.BanEnds > 0:
		d.Outcome = ratelimit.Banned
	case fits:
		d.Outcome = ratelimit.Allowed
		e.charge(d)
		r.clear()
	default:
		d.Outcome = ratelimit.Limited
		d.Settle()
		l.strike(s, h, subject, &e.account, &r, d)
	}
	d.StrikesLeft = strikesLeft(d, &r)
	d.Settle()

	if e.found || d.Outcome == ratelimit.Allowed {
		if err := l.reserve(s, h, &e, d.Time); err != nil {
			return err
		}
	}
	if r != before || hasRecord && r.empty() {
		// Without room the record is not kept, which makeRoom has counted. The
		// decision stands.
		_ = l.putRecord(s, h, r, 0, d.Time)
	}
	if e.found {
		l.put(s, h, &e, s.mark(h), d.Time)
	}
	l.sweep(s, d.Time, rollSteps)
	return nil
}

// strike enters a limited request into the record, which may start a ban.
func (l *Limiter) strike(s *segment, h uint64, subject string, a *account, r *record, d *ratelimit.Decision) {
	penalty := d.Plan.Penalty()
	if penalty.Strikes == 0 {
		return
	}
	r.expires = max(r.expires, a.lastEnd())
	if r.strike(penalty, d.Time, windowStart(d)) {
		d.Outcome, d.BanEnds = ratelimit.Banned, r.until
		s.name(h, subject, d.Time)
	}
}
