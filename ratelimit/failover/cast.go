package failover

import (
	"context"
	"time"
)

// cast brings what the primary last said about subject to the local engine. It is
// called before the local engine decides anything about the subject. Other
// goroutines wait for the shard's lock meanwhile: the local engine answers at once,
// and the primary is never called under the lock. If the local engine fails, the
// next call of cast tries again; until then the local engine decides by what it has.
func (l *Limiter) cast(ctx context.Context, subject string) {
	x, h := l.shadow.find(subject)
	if x == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	kept, known := x.seen[h]
	if known && l.project(ctx, subject, &kept) == nil {
		l.shadow.remove(x, h)
	}
}

// project brings the local engine to what kept says. After an error it can be done
// again, since it charges no more than what that engine has not counted.
func (l *Limiter) project(ctx context.Context, subject string, kept *seen) error {
	d, err := l.localCapable.peeker.Peek(ctx, subject, kept.plan)
	if err != nil {
		return err
	}
	now := time.Now()
	u := usage{plan: kept.plan, at: now.UnixNano()}
	for i := range kept.plan.Len() {
		ends := kept.states[i].Reset
		if ends <= now.Unix() {
			continue
		}
		// What the local engine has counted since an earlier outage was merged,
		// and is part of what the primary said.
		u.units[i] = max(d.States[i].Remaining-kept.states[i].Remaining, 0)
		// If the primary's clock is ahead its window may not have begun here.
		begins := time.Unix(ends, 0).Add(-kept.plan.Quota(i).Window)
		u.at = max(u.at, begins.UnixNano())
	}
	if err := charge(ctx, l.opts.Local, subject, &u); err != nil {
		return err
	}
	if left := time.Until(time.Unix(kept.banEnds, 0)); left > 0 && l.localCapable.banner != nil {
		return l.localCapable.banner.Ban(ctx, subject, left)
	}
	return nil
}
