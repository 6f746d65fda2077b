package memory

import (
	"context"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

var errNoSubject = fmt.Errorf("%w: no subject", ratelimit.ErrInvalid)

func (l *Limiter) segment(h uint64) *segment { return &l.segments[h>>l.shift] }

// Peek implements [ratelimit.Peeker].
func (l *Limiter) Peek(_ context.Context, subject string, plan *ratelimit.Plan) (d ratelimit.Decision, err error) {
	if err := plan.Check(subject, 1); err != nil {
		return d, err
	}
	d.Plan, d.Cost, d.Time = plan, 1, l.clock.now()
	h := l.key.sum(subject)
	s := l.segment(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := l.peek(s, h)
	e.roll(d.Time, plan)
	r, _ := s.record(h, d.Time)
	fits := e.states(&d)
	d.BanEnds = r.banEnds(d.Time)
	switch {
	case d.BanEnds > 0:
		d.Outcome = ratelimit.Banned
	case fits:
		d.Outcome = ratelimit.Allowed
	default:
		d.Outcome = ratelimit.Limited
	}
	d.StrikesLeft = strikesLeft(&d, &r)
	d.Settle()
	return d, nil
}

// Reset implements [ratelimit.Resetter].
func (l *Limiter) Reset(_ context.Context, subject string) error {
	if subject == "" {
		return errNoSubject
	}
	h := l.key.sum(subject)
	s := l.segment(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	l.drop(s, h) // first, so that until the end of the call every other one waits for the lock
	l.drop(s, recordHash(h))
	return nil
}

// Refund implements [ratelimit.Refunder].
func (l *Limiter) Refund(_ context.Context, subject string, d *ratelimit.Decision) error {
	if d == nil {
		return fmt.Errorf("%w: no decision", ratelimit.ErrInvalid)
	}
	if d.Outcome != ratelimit.Allowed {
		return nil
	}
	if err := d.Plan.Check(subject, d.Cost); err != nil {
		return err
	}
	now := l.clock.now()
	h := l.key.sum(subject)
	s := l.segment(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := l.take(s, h)
	if !e.found {
		return nil
	}
	e.expire(now)
	e.refund(d)
	if e.n == 0 { // all of its windows are over
		s.thaw(h, &e, 0)
		l.drop(s, h)
		return nil
	}
	if err := l.reserve(s, h, &e, now); err != nil {
		return err
	}
	l.put(s, h, &e, s.mark(h), now)
	return nil
}

// AddUsage implements [ratelimit.UsageAdder].
func (l *Limiter) AddUsage(_ context.Context, subject string, plan *ratelimit.Plan, units [ratelimit.MaxQuotas]int64, at time.Time) error {
	if err := plan.Check(subject, 1); err != nil {
		return err
	}
	for i, n := range units {
		if n < 0 {
			return fmt.Errorf("%w: usage of %d units", ratelimit.ErrInvalid, n)
		}
		units[i] = min(n, ratelimit.MaxLimit)
	}
	now := l.clock.now()
	h := l.key.sum(subject)
	s := l.segment(h)
	s.mu.Lock()
	defer s.mu.Unlock()
	e := l.take(s, h)
	e.roll(now, plan)
	if added := e.add(plan, units, nanoseconds(at), now); !added && !e.found {
		return nil
	}
	if err := l.reserve(s, h, &e, now); err != nil {
		return err
	}
	l.put(s, h, &e, s.mark(h), now) // a record may outlive the account that this one follows
	return nil
}
