package engine

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/internal/gcra"
	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A MultiTaker decides about several charges at one instant. Engines may implement
// it. Users call [ratelimit.TakeAll], which decides about plans without quotas itself.
type MultiTaker interface {
	// TakeAll makes all charges or none, as [ratelimit.TakeAll] says. For the decisions that
	// are Skipped, nothing was changed. All decisions have the same Time. An error leaves
	// them undefined.
	TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error
}

// CheckAll reports whether the charges can be decided together, and whether there is
// room for as many decisions. Engines that are a [MultiTaker] call it first. Errors
// wrap [ratelimit.ErrInvalid], and [ratelimit.ErrCostExceedsLimit] if a cost is over a limit.
func CheckAll(charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := plan.CheckCharges(len(charges), len(decisions)); err != nil {
		return fmt.Errorf("%w: %w", ratelimit.ErrInvalid, err)
	}
	for i := range charges {
		c := &charges[i]
		if err := c.Plan.Check(c.Subject, c.Cost); err != nil {
			return fmt.Errorf("charge %d: %w", i+1, err)
		}
		if Of(c.Plan).Len() == 0 {
			return fmt.Errorf("%w: the plan of charge %d has no quotas; call ratelimit.TakeAll, which decides it", ratelimit.ErrInvalid, i+1)
		}
		for k := range i {
			if charges[k].Subject == c.Subject {
				return fmt.Errorf("%w: charges %d and %d have the same subject, which would be counted twice", ratelimit.ErrInvalid, k+1, i+1)
			}
		}
	}
	return nil
}

// Deciding returns the index of the decision that matters most, which the header fields and the
// answer to a denied request show. If any is a denial, it is the denial with the longest
// RetryAfter, or one that is [ratelimit.Suspended], which has no end. If all are allowed, it is
// the one with the least remaining and, on a tie, the later reset, and an unlimited one only if
// all are unlimited. If the costs differ, so do the units, such as requests and tokens. It is
// then the one that another such request would leave with the smallest part of its limit. Of
// equal ones it is the first. Deciding returns -1 if there are no decisions.
func Deciding(decisions []ratelimit.Decision) int {
	most, unlike, cost := -1, false, int64(0)
	for i := range decisions {
		if d := &decisions[i]; counts(d) {
			unlike = unlike || cost != 0 && d.Cost != cost
			cost = d.Cost
		}
	}
	for i := range decisions {
		if most < 0 || mattersMore(&decisions[i], &decisions[most], unlike) {
			most = i
		}
	}
	return most
}

// mattersMore compares decisions of which some may be in unlike units.
func mattersMore(a, b *ratelimit.Decision, unlike bool) bool {
	switch {
	case denied(a) != denied(b):
		return denied(a)
	case (a.Outcome == ratelimit.Suspended) != (b.Outcome == ratelimit.Suspended):
		return a.Outcome == ratelimit.Suspended
	case denied(a):
		return a.RetryAfter > b.RetryAfter
	case !counts(a) || !counts(b):
		return counts(a) && !counts(b) || a.Plan != nil && b.Plan == nil
	case left(a, unlike) != left(b, unlike):
		return left(a, unlike) < left(b, unlike)
	}
	return a.Reset() > b.Reset()
}

// counts reports whether the decision is about a plan with quotas: an unlimited one has
// nothing to show, and there is no plan if no engine has decided.
func counts(d *ratelimit.Decision) bool { return d.Plan != nil && Of(d.Plan).Len() > 0 }

// left returns what remains of the applicable quota. Of unlike units it is the part of the
// limit that another such request would leave: less than 0 if that is refused. A
// soft quota has nearly all of 2^53 - 1 left, so that a hard one comes first.
func left(d *ratelimit.Decision, unlike bool) float64 {
	remaining := d.States[d.Applicable].Remaining
	if unlike {
		return float64(remaining-d.Cost) / float64(d.Plan.Numbers().Quota(d.Applicable).AtOnce())
	}
	return float64(remaining) // exact: at most 2^53 - 1
}

// denied reports whether the request was refused because of this subject.
func denied(d *ratelimit.Decision) bool {
	return d.Outcome == ratelimit.Limited || d.Outcome == ratelimit.Banned || d.Outcome == ratelimit.Suspended
}

// TakeInOrder makes the charges in order, for engines that cannot decide about them at one
// instant. Their TakeAll calls it, and their documentation says so. If one is refused, those
// before it are given back, and what those after it have left is only looked up ([Peeker]), so
// that they get no strike. If the engine cannot look it up, their decisions stay zero. Then
//
//   - a concurrent request may be refused because of units that are about to be given
//     back, which takes one call of the engine for each charge;
//   - if giving units back fails, or the process ends before, they stay charged until
//     their windows end: never more than the request costs. If ctx ends meanwhile,
//     TakeInOrder returns, and goes on giving back in the background. In both cases their
//     decisions are Allowed, beside the denial of another;
//   - a charge that is given back has cleared the strikes of its subject.
//
// An engine that is not an [Adjuster] cannot give units back. TakeInOrder then looks
// up all charges before it makes them. If a concurrent request takes the last units in
// between, the charges before the one that is refused stay, and their decisions are
// Allowed. With an engine that is neither an Adjuster nor a Peeker, it returns an error
// that wraps [ratelimit.ErrInvalid] and [errors.ErrUnsupported], unless there is only one
// charge.
func TakeInOrder(ctx context.Context, l ratelimit.Limiter, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := CheckAll(charges, decisions); err != nil {
		return err
	}
	clear(decisions)
	t := inOrder{ctx: ctx, limiter: l, charges: charges, decisions: decisions}
	t.adjuster, _ = l.(Adjuster)
	t.peeker, _ = l.(Peeker)
	err := t.take()
	if err != nil {
		clear(decisions)
	}
	return err
}

// giveBackTimeout bounds how long charges are given back.
const giveBackTimeout = 500 * time.Millisecond

// inOrder makes charges one after the other.
type inOrder struct {
	ctx       context.Context
	limiter   ratelimit.Limiter
	adjuster  Adjuster // nil: the engine cannot
	peeker    Peeker   // nil: the engine cannot
	charges   []ratelimit.Charge
	decisions []ratelimit.Decision
}

func (t *inOrder) take() error {
	if t.adjuster == nil && len(t.charges) > 1 {
		if t.peeker == nil {
			return fmt.Errorf("%w: %T cannot make several charges: it is neither an Adjuster nor a Peeker: %w",
				ratelimit.ErrInvalid, t.limiter, errors.ErrUnsupported)
		}
		if refused, err := t.peekFrom(0); refused || err != nil {
			return err
		}
	}
	for i, c := range t.charges {
		d, err := t.limiter.Take(t.ctx, c.Subject, c.Plan, c.Cost)
		t.decisions[i] = d
		if err == nil && d.Allowed() {
			continue
		}
		t.giveBack(i)
		if err != nil {
			return err
		}
		if t.peeker != nil {
			_, _ = t.peekFrom(i + 1) // the request is denied in any case
		}
		return nil
	}
	return nil
}

// giveBack gives the first n charges back. The decision about one that stays is still
// Allowed. If the context of the caller ends first, giveBack goes on in the background.
func (t *inOrder) giveBack(n int) {
	if t.adjuster == nil || n == 0 {
		return
	}
	charges, decisions, done := slices.Clone(t.charges[:n]), slices.Clone(t.decisions[:n]), make(chan struct{})
	adjuster, ctx := t.adjuster, context.WithoutCancel(t.ctx)
	go func() {
		defer close(done)
		ctx, cancel := context.WithTimeout(ctx, giveBackTimeout)
		defer cancel()
		for i := range decisions {
			if adjuster.Adjust(ctx, charges[i].Subject, &decisions[i], 0, "") == nil {
				spare(&decisions[i])
			}
		}
	}()
	select {
	case <-done:
		copy(t.decisions, decisions)
	case <-t.ctx.Done():
	}
}

// spare makes d the decision about a charge that was given back.
func spare(d *ratelimit.Decision) {
	p := Of(d.Plan)
	for k := range p.Len() {
		if p.Kind(k) < 0 {
			uncharge(d, k)
		} else {
			d.States[k].Remaining = min(d.States[k].Remaining+d.Cost, p.Limit(k))
		}
	}
	d.Outcome, d.Receipt.Others = ratelimit.Skipped, [len(d.Receipt.Others)]fixedwindow.Window{}
	Complete(d)
}

// peekFrom looks the charges from the n-th on up. It reports whether one of them would
// be refused.
func (t *inOrder) peekFrom(n int) (refused bool, err error) {
	for i := n; i < len(t.charges); i++ {
		c, d := t.charges[i], &t.decisions[i]
		if *d, err = t.peeker.Peek(t.ctx, c.Subject, c.Plan); err != nil {
			*d = ratelimit.Decision{}
			return refused, err
		}
		if d.Outcome == ratelimit.Allowed {
			d.Outcome = ratelimit.Skipped
		}
		if d.Cost != c.Cost { // a peek is about one unit
			d.Cost = c.Cost
			if d.Outcome == ratelimit.Skipped && refuses(d) {
				d.Outcome = ratelimit.Limited
			}
			Complete(d)
		}
		refused = refused || d.Outcome != ratelimit.Skipped
	}
	return refused, nil
}

// refuses reports whether a quota has less left than the request costs.
func refuses(d *ratelimit.Decision) bool {
	for i := range Of(d.Plan).Len() {
		if d.States[i].Remaining < d.Cost {
			return true
		}
	}
	return false
}

// uncharge sets what is left of the i-th quota, which is smooth, once the units that it was
// charged are given back.
func uncharge(d *ratelimit.Decision, i int) {
	s, b, now := &d.States[i], d.Plan.Numbers().Bucket(i), gcra.At(d.Time)
	full := b.Uncharged(gcra.Of(s.Reset, d.Receipt.Rounded[i]), now, d.Cost)
	s.Remaining = b.Left(full, now)
	s.Reset, d.Receipt.Rounded[i] = full.RoundUp()
}
