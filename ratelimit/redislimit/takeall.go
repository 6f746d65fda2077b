package redislimit

import (
	"context"
	"encoding/binary"
	"errors"
	"hash/maphash"
	"slices"
	"strconv"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// TakeAll implements [engine.MultiTaker]. On one server it is one call of a script,
// which makes all charges at one instant, or none. Groups of charges that come together
// share a call, as calls of Take do, and equal ones one decision.
//
// The subjects of a cluster lie on different servers. There TakeAll makes one charge after the
// other and gives back those before one that is refused, in one round trip each, with the
// bounds that [engine.TakeInOrder] states. The decisions have times of their own, a concurrent
// request may be refused because of units that are about to be given back, and only the first
// subject that refuses gets a strike. Put subjects that many requests share last.
func (l *Limiter) TakeAll(ctx context.Context, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	return l.takeAll(ctx, nil, charges, decisions)
}

// takeAll is TakeAll, of a holder unless h is nil.
func (l *Limiter) takeAll(ctx context.Context, h *holder, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	if err := engine.CheckAll(charges, decisions); err != nil {
		return err
	}
	if !l.sender.oneSlot.Load() {
		if err := l.takeTogether(ctx, h, charges, decisions); !errors.Is(err, errSeveralSlots) {
			return err
		}
	}
	if h != nil {
		return engine.TakeInOrder(ctx, h, charges, decisions)
	}
	return engine.TakeInOrder(ctx, l, charges, decisions)
}

// errSeveralSlots says that a server is in cluster mode, and that subjects lie in
// different slots. Nothing was done.
var errSeveralSlots = errors.New("the subjects lie in several slots of a cluster")

// takes are the charges of one call of TakeAll.
type takes struct {
	charges []ratelimit.Charge
	answers []answer
	hash    uint64 // the same for equal charges
}

var takesSeed = maphash.MakeSeed()

// newTakes copies the charges, since a call may outlive the caller's wait.
func newTakes(charges []ratelimit.Charge) *takes {
	var h maphash.Hash
	h.SetSeed(takesSeed)
	for _, c := range charges {
		maphash.WriteComparable(&h, c)
	}
	return &takes{charges: slices.Clone(charges), hash: h.Sum64()}
}

// takeTogether makes the charges in one call of the script.
func (l *Limiter) takeTogether(ctx context.Context, h *holder, charges []ratelimit.Charge, decisions []ratelimit.Decision) error {
	g, place, err := l.do(ctx, operation{code: opTakeAll, subject: charges[0].Subject, takes: newTakes(charges), holder: h})
	if err != nil {
		return err
	}
	for i, c := range charges {
		if decisions[i], err = g.takes.answers[i].decision(c.Plan, c.Cost, place); err != nil {
			return err
		}
		if h != nil && decisions[i].Allowed() {
			h.keep(c.Subject, c.Cost, g.takes.answers[i].bytes)
		}
	}
	return nil
}

// hasRoomForTakes reports whether the command can take the group too.
func (cmd *command) hasRoomForTakes(g *group) bool {
	n := len(g.takes.charges)
	for _, other := range cmd.groups {
		n += len(other.takes.charges)
	}
	return n <= maxSubjects
}

// readTakes reads what is said of a group of takes from the front of b, and returns
// the rest.
func (g *group) readTakes(b string) (rest string, err error) {
	if b == "" {
		return "", errReply
	}
	switch g.letter = b[0]; g.letter {
	case needsIndex:
		if g.index == indexGiven {
			return "", errReply
		}
		return b[1:], nil
	case unknown, wrongIndex:
		if len(b) < 2 || int(b[1]) < 1 || int(b[1]) > len(g.takes.charges) {
			return "", errReply
		}
		g.subject = g.takes.charges[b[1]-1].Subject
		g.partition = partition(g.subject)
		return b[2:], nil
	}
	g.granted = g.requests
	g.takes.answers = make([]answer, len(g.takes.charges))
	for i := range g.takes.answers {
		a := &g.takes.answers[i]
		a.nanos, a.requests = g.nanos, g.requests
		if b, err = a.read(b); err != nil {
			return "", err
		}
		g.granted = min(g.granted, a.granted)
	}
	return b, nil
}

// takeAllArgs returns the arguments of a command of groups of takes.
func (cmd *command) takeAllArgs(k *keys, now int64) []any {
	type plan struct {
		*ratelimit.Plan
		cost int64
	}
	charges := 0
	for _, g := range cmd.groups {
		charges += len(g.takes.charges)
	}
	numbers := make(map[string]int, charges) // of subjects
	names := make([]string, 0, charges)
	takes := make([]byte, 0, 3*len(cmd.groups)+2*charges)
	args := append(cmd.call(make([]any, 0, charges+4)), "")
	var known []plan // mostly few
	var plans []byte
	for _, g := range cmd.groups {
		takes = binary.BigEndian.AppendUint16(append(takes, byte(len(g.takes.charges))), uint16(g.requests))
		for _, c := range g.takes.charges {
			s := numbers[c.Subject]
			if s == 0 {
				names = append(names, c.Subject)
				s = len(names)
				numbers[c.Subject] = s
				args = append(args, k.subject(partition(c.Subject), c.Subject))
			}
			p := slices.Index(known, plan{c.Plan, c.Cost})
			if p < 0 {
				p = len(known)
				known = append(known, plan{c.Plan, c.Cost})
				op := operation{code: opTake, plan: c.Plan, cost: c.Cost}
				begin := len(plans)
				plans = op.appendTo(append(plans, 0), now)
				plans[begin] = byte(len(plans) - begin - 1)
			}
			takes = append(takes, byte(s), byte(p+1))
		}
	}
	indexed := cmd.groups[0].index == indexGiven
	if indexed {
		for _, name := range names {
			args = append(args, k.index(partition(name)))
		}
	}
	counts := ""
	if h := cmd.groups[0].holder; h != nil {
		for _, name := range names {
			args = append(args, k.holds(partition(name), name))
		}
		counts = h.terms(cmd.groups[0].takes.charges...)
	}
	args[2] = strconv.Itoa(len(args) - 3)
	packed := append([]byte{opTakeAll, byte(len(known))}, plans...)
	args = append(args, append(packed, takes...), counts)
	if indexed {
		for _, name := range names {
			args = append(args, name)
		}
	}
	return args
}
