package failover

import (
	"cmp"
	"context"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// mirror brings the local engine to what d says, a decision of the primary, if the subject is
// denied or has used half of a quota. An outage then grants it no second quota, and ends no ban. If
// the local engine fails, the next decision brings it there. Of a smooth quota, what has come back
// while the answer was on its way counts as used.
func (l *Limiter) mirror(ctx context.Context, subject string, d *ratelimit.Decision) {
	if l.local == nil || !matters(d) {
		return
	}
	l.mirroring.Lock()
	defer l.mirroring.Unlock()
	here, err := l.local.Peek(ctx, subject, d.Plan)
	if err != nil {
		return
	}
	for i := range engine.Of(d.Plan).Len() {
		if missing := here.States[i].Remaining - d.States[i].Remaining; missing > 0 {
			used := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: d.Plan, Time: d.Time}
			used.States[i], used.Receipt.Rounded[i] = d.States[i], d.Receipt.Rounded[i]
			_ = l.local.Adjust(ctx, subject, &used, missing, "")
		}
	}
	// What is left of a ban is the same by both clocks. The local engine rounds its end up to
	// a whole second. No ban becomes shorter: the answer may have been overtaken.
	left := time.Unix(d.BanEnds, 0).Sub(time.Unix(0, d.Time)) - time.Second/2
	banner, ok := l.local.(engine.Banner)
	if ok && left > -time.Second/2 && time.Unix(here.BanEnds, 0).Before(time.Now().Add(left)) {
		_ = banner.Ban(ctx, subject, min(max(left, 1), fixedwindow.MaxLength), cmp.Or(d.BanReason(), engine.ReasonStrikes))
	}
}

func matters(d *ratelimit.Decision) bool {
	switch d.Outcome {
	case 0:
		return false // of one of several charges, if the primary could not look it up
	case ratelimit.Limited, ratelimit.Banned:
		return true
	}
	p := d.Plan.Numbers()
	for i := range p.Len() {
		if d.Used(i)*2 >= p.Quota(i).Shown {
			return true
		}
	}
	return false
}
