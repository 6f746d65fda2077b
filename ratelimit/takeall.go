package ratelimit

import (
	"context"
	"errors"
	"fmt"
	"slices"
)

// TakeAll makes all charges, or none if one of them is refused, and sets decisions[i]
// to the decision about charges[i]; [Deciding] finds the one to show. An engine that
// is a [MultiTaker] decides about them at one instant, and its documentation says
// what it promises.
//
// With another engine TakeAll makes the charges in order. If one is refused, those
// before it are given back, and what those after it have left is only looked up
// ([Peeker]), so that they get no strike; if the engine cannot look it up, their
// decisions stay zero. Put subjects that many requests share last. Then
//
//   - a concurrent request may be refused because of units that are about to be given
//     back, which takes one call of the engine for each charge;
//   - if giving units back fails, or the process ends before, they stay charged until
//     their windows end: never more than the request costs. If ctx ends meanwhile,
//     TakeAll returns, and goes on giving back in the background. In both cases their
//     decisions are Allowed, beside the denial of another;
//   - a charge that is given back has cleared the strikes of its subject.
//
// An engine that is not an [Adjuster] cannot give units back. TakeAll then looks up
// all charges before it makes them. If a concurrent request takes the last units in
// between, the charges before the one that is refused stay, and their decisions are
// Allowed. With an engine that is neither an Adjuster nor a Peeker, TakeAll returns an
// error that wraps [ErrInvalid] and [errors.ErrUnsupported], unless there is only one
// charge.
func TakeAll(ctx context.Context, l Limiter, charges []Charge, decisions []Decision) error {
	if slices.ContainsFunc(charges, Charge.unmetered) {
		return takeMetered(ctx, l, charges, decisions)
	}
	if m, ok := l.(MultiTaker); ok {
		return m.TakeAll(ctx, charges, decisions)
	}
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

// inOrder makes charges one after the other.
type inOrder struct {
	ctx       context.Context
	limiter   Limiter
	adjuster  Adjuster // nil: the engine cannot
	peeker    Peeker   // nil: the engine cannot
	charges   []Charge
	decisions []Decision
}

func (t *inOrder) take() error {
	if t.adjuster == nil && len(t.charges) > 1 {
		if t.peeker == nil {
			return fmt.Errorf("%w: %T cannot make several charges: it is neither an Adjuster nor a Peeker: %w",
				ErrInvalid, t.limiter, errors.ErrUnsupported)
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
	b := givenBack{
		adjuster: t.adjuster, charges: slices.Clone(t.charges[:n]), decisions: slices.Clone(t.decisions[:n]),
		done: make(chan struct{}),
	}
	go b.run(context.WithoutCancel(t.ctx))
	select {
	case <-b.done:
		copy(t.decisions, b.decisions)
	case <-t.ctx.Done():
	}
}

// givenBack are charges that are given back.
type givenBack struct {
	adjuster  Adjuster
	charges   []Charge
	decisions []Decision
	done      chan struct{}
}

func (b *givenBack) run(ctx context.Context) {
	defer close(b.done)
	ctx, cancel := context.WithTimeout(ctx, refundTimeout)
	defer cancel()
	for i := range b.decisions {
		d := &b.decisions[i]
		if b.adjuster.Adjust(ctx, b.charges[i].Subject, d, 0, "") != nil {
			continue
		}
		for k := range d.Plan.Len() {
			if d.Plan.kinds[k] < 0 {
				d.uncharge(k)
			} else {
				d.States[k].Remaining = min(d.States[k].Remaining+d.Cost, d.Plan.quotas[k].Limit)
			}
		}
		d.Outcome, d.Others = Spared, [len(d.Others)]Window{}
		d.Settle()
	}
}

// peekFrom looks the charges from the n-th on up. It reports whether one of them would
// be refused.
func (t *inOrder) peekFrom(n int) (refused bool, err error) {
	for i := n; i < len(t.charges); i++ {
		c, d := t.charges[i], &t.decisions[i]
		if *d, err = t.peeker.Peek(t.ctx, c.Subject, c.Plan); err != nil {
			*d = Decision{}
			return refused, err
		}
		if d.Outcome == Allowed {
			d.Outcome = Spared
		}
		if d.Cost != c.Cost { // a peek is about one unit
			d.Cost = c.Cost
			if d.Outcome == Spared && d.refusing() != 0 {
				d.Outcome = Limited
			}
			d.Settle()
		}
		refused = refused || d.Outcome.denied()
	}
	return refused, nil
}
