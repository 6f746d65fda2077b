package failover

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A mirror keeps the local engine up to date: what the primary has decided about a
// subject that is denied, or has used half of a quota, is charged to the local engine
// immediately. An outage then grants these subjects no second quota, and ends no ban.
type mirror struct {
	local localEngine // nil: there is none
	// mu is one lock for all subjects: the primary decides less often than an
	// embedded engine answers.
	mu sync.Mutex
}

// update brings the local engine to what d says, a decision of the primary. If the local
// engine fails, the next decision brings it there. Of a smooth quota, what has come back while
// the answer was on its way counts as used.
func (m *mirror) update(ctx context.Context, subject string, d *ratelimit.Decision) {
	if m.local == nil || !matters(d) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	here, err := m.local.Peek(ctx, subject, d.Plan)
	if err != nil {
		return
	}
	for i := range engine.Of(d.Plan).Len() {
		if missing := here.States[i].Remaining - d.States[i].Remaining; missing > 0 {
			used := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: d.Plan, Time: d.Time}
			used.States[i], used.Receipt.Rounded[i] = d.States[i], d.Receipt.Rounded[i]
			_ = m.local.Adjust(ctx, subject, &used, missing, "")
		}
	}
	// What is left of a ban is the same by both clocks. The local engine rounds its end up to
	// a whole second. No ban becomes shorter: the answer may have been overtaken.
	left := time.Unix(d.BanEnds, 0).Sub(time.Unix(0, d.Time)) - time.Second/2
	banner, ok := m.local.(engine.Banner)
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
