package redislimit

import (
	"context"
	"encoding/binary"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// Lease implements [engine.Leaser] in one call of the script. While a cluster moves the slot
// of the subject, it waits as Ban does. Redis keeps the generation of the subject's usage in a
// key of about 100 bytes, until the last window that a Lease has charged has ended.
func (l *Limiter) Lease(ctx context.Context, subject string, plan *ratelimit.Plan, cost int64, terms engine.Terms) (ratelimit.Decision, error) {
	d, back, err := engine.DecideLease(subject, plan, cost, terms)
	if err != nil || d.Outcome != 0 {
		return d, err
	}
	asked := &lease{own: cost, more: min(terms.More, fixedwindow.MaxUnits), refused: int32(min(terms.Denied, maxCalls-1))}
	if cost > 0 {
		asked.refused++
	}
	if back < 0 {
		asked.back = &change{charge: *terms.Back, units: back}
	}
	g, _, err := l.do(ctx, operation{code: opLease, subject: subject, plan: plan, cost: max(cost, 1), lease: asked})
	if err != nil {
		return ratelimit.Decision{}, err
	}
	return g.leased()
}

// A lease is what a call of Lease needs beside a take, and its answer.
type lease struct {
	own     int64 // units of the request, 0 if there is none
	more    int64
	refused int32   // how many requests are, if this one is
	back    *change // nil: none

	share      int64
	generation uint32
}

// terms returns what the script is sent of a lease.
func (x *lease) terms() []byte {
	b := binary.BigEndian.AppendUint16(appendU64(nil, uint64(x.more)), uint16(x.refused))
	b = append(b, byte(min(x.own, 1)))
	if x.back != nil {
		generation, _ := x.back.charge.Receipt.Generation()
		b = binary.BigEndian.AppendUint32(b, generation)
		b = x.back.appendTo(append(b, opGiveBack))
	}
	return b
}

// readLease reads what follows the value of the subject.
func (g *group) readLease() error {
	if g.letter == unknown || g.letter == wrongIndex {
		return nil
	}
	n := len(g.bytes) - 12
	if n < 0 {
		return errReply
	}
	x, end := g.lease, g.bytes[n:]
	x.share, x.generation = u32(end)<<32|u32(end[4:]), uint32(u32(end[8:]))
	if g.bytes = g.bytes[:n]; uint64(x.share) > uint64(x.more) {
		return errReply
	}
	return nil
}

// leased works out the decision of a lease. Its request is the last one of those that were
// refused.
func (g *group) leased() (d ratelimit.Decision, err error) {
	x := g.lease
	charged := g.letter == done && x.own+x.share > 0
	switch {
	case charged:
		d, err = g.decision(g.plan, x.own+x.share, 0)
	case x.own > 0:
		d, err = g.decision(g.plan, x.own, x.refused-1)
	default:
		d, err = g.view(g.plan, 1+min(x.more, 1)) // of one unit left, none is a share
		d.Cost = 0
	}
	d.Receipt.SetGeneration(x.generation)
	d.Struck = g.letter == banStarted || g.letter == denied && g.limited > 0
	return d, err
}
