package failover

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// Adjust implements [ratelimit.Adjuster], within the budget. It does nothing if mode
// [FailOpen] admitted the request, since that was counted nowhere.
//
// In mode [FailLocal], if the primary does not answer, or the circuit is open, the local
// engine makes the adjustment, and the primary makes it later. If the answer of the primary
// was lost, or ctx has ended before it came, the call is repeated with the same id, and made
// once. If the local engine or the journal has no room, nothing is adjusted, and the error
// wraps [ratelimit.ErrUnavailable]. The other modes return such an error if the primary does
// not make the adjustment.
//
// When the primary has added units in mode FailLocal, it is asked with Peek what the subject
// has used, so that the local engine knows it too.
//
// The primary alone remembers ids. In mode FailLocal do not repeat a call that returned nil.
func (l *Limiter) Adjust(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	primary, _, err := both[ratelimit.Adjuster](l, "adjust")
	if err != nil {
		return err
	}
	added, err := d.Adjustment(subject, units)
	switch {
	case err != nil:
		return fmt.Errorf("failover: %w", err)
	case added == 0, l.mode == FailOpen && d.Cost > 0 && unused(d):
		return nil
	}
	sent := false
	if l.breaker.look().closed() {
		id = cmp.Or(id, rand.Text())
		failed, err := within(ctx, l.opts.Budget, func(ctx context.Context) error {
			if err := l.journal.bring(ctx, subject); err != nil {
				return err
			}
			sent = true
			return primary.Adjust(ctx, subject, d, units, id)
		})
		switch {
		case err == nil && added > 0 && l.mode == FailLocal:
			_, _ = l.Peek(ctx, subject, d.Plan) // which mirrors the answer
			return nil
		case err == nil || errors.Is(err, ratelimit.ErrInvalid):
			return err
		case failed && l.mode != FailLocal:
			return l.refusal(err)
		case !failed && !(sent && l.mode == FailLocal):
			return err // the context has ended
		}
	} else if l.mode != FailLocal {
		return l.refusal(nil)
	}
	if !sent {
		id = ""
	}
	return l.adjustHere(context.WithoutCancel(ctx), subject, d, units, id)
}

// adjustHere has the local engine make an adjustment. The primary gets it later. An id
// says that it may have made it.
func (l *Limiter) adjustHere(ctx context.Context, subject string, d *ratelimit.Decision, units int64, id string) error {
	after, local := *d, l.mirror.local
	err := l.journal.enter(subject, &after, units, id, time.Now().UnixNano(), func() error {
		if err := local.Adjust(ctx, subject, d, units, ""); err != nil || id != "" || !d.Plan.Smooth() {
			return err
		}
		here, err := local.Peek(ctx, subject, d.Plan)
		for i := range d.Plan.Len() {
			if d.Plan.Kind(i) < 0 && d.States[i].Reset != 0 && err == nil {
				after.States[i], after.Rounded[i] = here.States[i], here.Rounded[i]
			}
		}
		return nil
	})
	if err == nil {
		l.keeper.start()
	}
	return err
}

// unused reports whether each quota has its whole limit left.
func unused(d *ratelimit.Decision) bool {
	for i := range d.Plan.Len() {
		q := d.Plan.Quota(i)
		if d.States[i].Remaining < cmp.Or(q.Burst(), q.Limit) {
			return false
		}
	}
	return true
}
