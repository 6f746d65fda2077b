package failover

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A mirror keeps the local engine up to date: what the primary has decided about a
// subject that is denied, or has used half of a quota, is charged to the local engine
// at once. An outage then grants these subjects no second quota, and ends no ban. If the
// primary then knows of less, and nothing was given back, it has lost data, and is given
// them again.
type mirror struct {
	local    localEngine // nil: there is none
	restorer restorer    // nil: the primary cannot tell what it has lost from what was given back

	// generation counts the commands. An answer of the primary that a command
	// overtook is not mirrored: it has the generation from before the command.
	generation atomic.Uint64
	// mu is one lock for all subjects: the primary decides less often than an
	// embedded engine answers.
	mu sync.Mutex
	// banned is when the primary made the decision of which a ban was mirrored last, by its
	// clock. An earlier decision makes no ban shorter: its answer may have been overtaken.
	banned int64
}

// A restorer is a primary that takes back what it has lost: see the engine of redislimit.
type restorer interface {
	Restore(ctx context.Context, subject string, known *ratelimit.Decision) (givenBack int64, err error)
}

// known adds what the local engine knows of each subject to all: before the primary is
// asked, so that its answer is no older. It returns the time of that too, for refilled.
func (m *mirror) known(ctx context.Context, charges []ratelimit.Charge, all []ratelimit.Decision) ([]ratelimit.Decision, time.Time) {
	if m.restorer == nil {
		return all, time.Time{}
	}
	asked := time.Now()
	for i := range charges {
		all = append(all, ratelimit.Decision{})
		all[i], _ = m.local.Peek(ctx, charges[i].Subject, charges[i].Plan)
	}
	return all, asked
}

// restore gives the primary what it has lost: it knew of less than was known before it was
// asked. restore reports whether one of these requests was admitted, and is to be decided again.
// That counts it once where usage is raised to what was known, and twice elsewhere. If the
// primary lost nothing, the local engine forgets the subject, and the decision says what is
// left.
func (m *mirror) restore(ctx context.Context, charges []ratelimit.Charge, decisions, known []ratelimit.Decision, asked time.Time) (again bool, err error) {
	for i := range known {
		d, k, c, cost := &decisions[i], &known[i], &charges[i], int64(0)
		for q := range of(c.Plan).Len() {
			k.States[q].Remaining = min(k.States[q].Remaining+refilled(c.Plan, q, asked), of(c.Plan).Quota(q).AtOnce())
		}
		if d.Allowed() {
			cost = c.Cost
		}
		if !less(d, k, cost, 0) {
			continue
		}
		lost := *k // which escapes
		givenBack, err := m.restorer.Restore(ctx, c.Subject, &lost)
		if err != nil {
			return false, err
		}
		if less(d, k, cost, givenBack) {
			again = d.Allowed() // as all of them are, or none
		} else if local, ok := m.local.(resetter); ok {
			_ = local.Reset(ctx, c.Subject)
			*k = ratelimit.Decision{} // and learns it again
		}
	}
	return again, nil
}

// refilled returns how many units of a quota have come back by themselves since a time,
// unless that is zero.
func refilled(p *ratelimit.Plan, quota int, since time.Time) int64 {
	if of(p).Kind(quota) > 0 || since.IsZero() {
		return 0
	}
	return int64(uint64(gcra.At(int64(time.Since(since)))) / of(p).Bucket(quota).Interval())
}

// less reports whether the primary, before it decided d for a cost, knew of less usage than was
// known, apart from what was given back, or not of a ban. Smooth quotas and the ends of bans are
// rounded.
func less(d, known *ratelimit.Decision, cost, givenBack int64) bool {
	if d.Outcome == 0 || known.Outcome == 0 {
		return false
	}
	for i := range of(d.Plan).Len() {
		more := d.States[i].Remaining + cost - known.States[i].Remaining - givenBack
		if of(d.Plan).Kind(i) < 0 && more > 2 || of(d.Plan).Kind(i) > 0 && more > 0 && known.States[i].Reset == d.States[i].Reset {
			return true
		}
	}
	left := time.Duration(known.BanEnds*int64(time.Second) - known.Time)
	return d.BanEnds == 0 && left > 2*time.Second && givenBack < fixedwindow.MaxUnits
}

// update brings the local engine to what d says, a decision of the primary, which
// was asked at a time, if that is not zero, and in the given generation. If the local engine
// fails, the next decision brings it there.
func (m *mirror) update(ctx context.Context, subject string, d *ratelimit.Decision, asked time.Time, generation uint64) {
	if m.local == nil || !matters(d) {
		return
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.generation.Load() != generation {
		return
	}
	here, err := m.local.Peek(ctx, subject, d.Plan)
	if err != nil {
		return
	}
	now := time.Now()
	for i := range of(d.Plan).Len() {
		missing := here.States[i].Remaining - d.States[i].Remaining - refilled(d.Plan, i, asked)
		if missing > 0 && time.Unix(d.States[i].Reset, 0).After(now) {
			used := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: d.Plan, Time: d.Time}
			used.States[i], used.Receipt.Rounded[i] = d.States[i], d.Receipt.Rounded[i]
			_ = m.local.Adjust(ctx, subject, &used, missing, "")
		}
	}
	// What is left of a ban is the same by both clocks. The local engine rounds its end up to
	// a whole second.
	left := time.Unix(d.BanEnds, 0).Sub(time.Unix(0, d.Time)) - time.Second/2
	banner, ok := m.local.(ratelimit.Banner)
	longer, why := time.Unix(here.BanEnds, 0).Sub(now.Add(left)), cmp.Or(d.BanReason(), plan.Strikes)
	differs := longer > 2*time.Second || here.BanReason() != why
	if ok && left > -time.Second/2 && (longer < 0 || differs && d.Time >= m.banned) {
		m.banned = d.Time
		_ = banner.Ban(ctx, subject, min(max(left, 1), fixedwindow.MaxLength), why)
	}
}

// override does what a command asks of the local engine. What the primary answered
// before is not mirrored after it.
func (m *mirror) override(command func() error) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.generation.Add(1)
	return command()
}

func matters(d *ratelimit.Decision) bool {
	switch d.Outcome {
	case 0:
		return false // of one of several charges, if the primary could not look it up
	case ratelimit.Limited, ratelimit.Banned:
		return true
	}
	p := of(d.Plan)
	for i := range p.Len() {
		if d.States[i].Remaining*2 <= p.Quota(i).AtOnce() {
			return true
		}
	}
	return false
}
