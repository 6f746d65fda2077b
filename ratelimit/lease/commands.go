package lease

import (
	"context"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// TakeAll implements [engine.MultiTaker]. The engine decides.
func (l *Limiter) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	for i := range charges {
		l.forget(charges[i].Subject)
	}
	return l.shared.TakeAll(ctx, charges, decisions)
}

// forget drops the entry of a subject, and gives its share back. Windows of another plan may open,
// to which the share is not charged.
func (l *Limiter) forget(subject string) {
	h, t := l.table(subject)
	t.mu.Lock()
	if i, found := t.places[h]; found {
		t.drop(int(i))
	}
	l.unlock(t)
}

// Peek implements [engine.Peeker].
func (l *Limiter) Peek(ctx context.Context, subject string, p *ratelimit.Plan) (ratelimit.Decision, error) {
	d, err := l.shared.Peek(ctx, subject, p)
	if err != nil {
		return d, err
	}
	h, t := l.table(subject)
	t.mu.Lock()
	defer t.mu.Unlock()
	if e := t.find(h, p); e != nil && e.left() > 0 {
		e.show(&d)
		if d.Outcome == ratelimit.Limited {
			d.Outcome = ratelimit.Allowed
			if engine.Complete(&d); d.Remaining() == 0 {
				d.Outcome = ratelimit.Limited
			}
		}
		engine.Complete(&d)
	}
	return d, nil
}

// Adjust implements [engine.Adjuster]. The next request of the subject asks the engine.
func (l *Limiter) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	err := l.shared.Adjust(ctx, subject, d, units, id)
	h, t := l.table(subject)
	t.mu.Lock()
	defer t.mu.Unlock()
	if i, found := t.places[h]; found {
		e := &t.entries[i]
		if e.stale = 0; e.left() == 0 {
			e.ends, e.asking = 0, 0
		}
	}
	return err
}

// Reset forgets subject.
func (l *Limiter) Reset(ctx context.Context, subject string) error {
	defer l.forget(subject)
	return l.shared.Reset(ctx, subject)
}

// Ban implements [engine.Banner].
func (l *Limiter) Ban(ctx context.Context, subject string, length time.Duration, reason string) error {
	defer l.forget(subject)
	return l.shared.Ban(ctx, subject, length, reason)
}

// Unban implements [engine.Banner].
func (l *Limiter) Unban(ctx context.Context, subject string) (bool, error) {
	defer l.forget(subject)
	return l.shared.Unban(ctx, subject)
}

// Bans implements [engine.Banner].
func (l *Limiter) Bans(ctx context.Context) ([]engine.Ban, error) { return l.shared.Bans(ctx) }
