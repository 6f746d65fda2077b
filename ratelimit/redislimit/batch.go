package redislimit

import (
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// An operation is what the script does for one subject. Operations are comparable:
// callers with equal ones share an answer.
type operation struct {
	code    byte // opTake, ...
	subject string
	plan    *ratelimit.Plan
	cost    int64
	length  time.Duration // of a ban
	reason  string        // of a ban
	change  *change       // of opAdd, opGiveBack and opRenew, instead of plan and cost
	takes   *takes        // of opTakeAll, instead of what is about one subject
	lease   *lease        // of opLease, beside plan and cost
	holder  *holder       // of a request whose opTake or opTakeAll is held
}

// A change is one of what a charge costs.
type change struct {
	charge ratelimit.Decision
	units  int64  // to add, negative: to give back
	id     string // Redis makes the change once for each id; empty: it does not remember it
	hold   *hold  // that it settles, or renews; nil: none
	total  int64  // units of the charge that it settles, with those that were charged before
}

// adjustment returns the operation that adds units to a charge or, if they are negative, gives
// them back. With 0 units it only ends a hold.
func adjustment(subject string, charge *ratelimit.Decision, units int64, id string) operation {
	op := operation{code: opAdd, subject: subject, change: &change{charge: *charge, units: units, id: id}}
	if units <= 0 {
		op.code = opGiveBack
	}
	return op
}

// shared reports whether callers with equal operations can share an answer.
func (op *operation) shared() bool {
	return op.holder == nil && (op.code == opTake || op.code == opPeek || op.code == opTakeAll)
}

// equal reports whether two operations do the same.
func (op *operation) equal(other *operation) bool {
	if op.takes != nil && other.takes != nil && op.holder == other.holder {
		return slices.Equal(op.takes.charges, other.takes.charges)
	}
	return *op == *other
}

// An operationKey is the same for equal operations. Others have it too, but hardly ever.
type operationKey struct {
	operation
	hash uint64 // of takes, instead of themselves
}

func (op *operation) key() operationKey {
	if op.takes == nil {
		return operationKey{operation: *op}
	}
	return operationKey{operation{code: op.code, subject: op.subject}, op.takes.hash}
}

// maxCalls is how many calls a group holds at most: the script has 16 bits for the
// number, and one is left free.
const maxCalls = 1 << 15

// A group is an operation, the calls that wait for it, and their answer.
type group struct {
	operation
	answer
	partition   int // of the subject
	index       indexUse
	first, last *call
	err         error

	// While the slot moves: whether a peek leaves the subject's holds alone, the last pause before
	// the group was sent again, and when to give up.
	leavesHolds bool
	pause       time.Duration
	giveUp      time.Time
}

// indexUse says whether a command has the index of bans among its keys.
type indexUse byte

const (
	indexNotNeeded   indexUse = iota
	indexGiven                // the operation changes the index
	indexUnavailable          // a take that would start a ban, while the index is on another master
)

func newGroup(op operation) *group {
	g := &group{operation: op, partition: partition(op.subject)}
	if strings.IndexByte("buxy", op.code) >= 0 {
		g.index = indexGiven
	}
	return g
}

// add enters a call.
func (g *group) add(c *call) {
	if g.last == nil {
		g.first = c
	} else {
		g.last.next = c
	}
	g.last = c
	g.requests++
}

// seal drops the calls that were withdrawn, and gives the others their places. It
// reports whether there are others.
func (g *group) seal() bool {
	c := g.first
	g.first, g.last, g.requests = nil, nil, 0
	for c != nil {
		next := c.next
		c.next = nil
		if c.state.move(queued, sent) {
			c.place = g.requests
			g.add(c)
		}
		c = next
	}
	return g.requests > 0
}

// finish gives the callers the answer. It returns how many requests were granted
// after the deadline of their caller, and are not held.
func (g *group) finish() (late int32) {
	for c := g.first; c != nil; {
		next, place := c.next, c.place // the caller may reuse the call
		if c.state.move(sent, answered) {
			c.ready <- struct{}{}
		} else if c.state.Load() == expired && g.holder == nil && (g.code == opTake || g.code == opTakeAll || g.code == opLease) && place < g.granted {
			late++
		}
		c = next
	}
	return late
}

// fail ends the group with an error.
func (g *group) fail(err error) {
	g.err = err
	g.finish()
}

// awaited reports whether a caller still waits for the answer, or it is a refund, for which none
// does.
func (g *group) awaited() bool {
	if g.first == nil {
		return true
	}
	for c := g.first; c != nil; c = c.next {
		if c.state.Load() == sent {
			return true
		}
	}
	return false
}

// maxGroups is how many groups a batch holds at most. It bounds how long one batch
// takes.
const maxGroups = 1024

// A batch is the groups that are sent together.
type batch struct {
	groups []*group
	calls  int
	shared map[operationKey]*group // groups that take more calls, by key; empty while there are few groups
	sentAt time.Time
	due    time.Time // when it is back, if it is not late
}

// fewGroups are searched without a map.
const fewGroups = 8

// add enters a call.
func (b *batch) add(op operation, c *call) *group {
	b.calls++
	if op.shared() {
		if g := b.find(&op); g != nil && g.requests < maxCalls {
			g.add(c)
			return g
		}
	}
	g := newGroup(op)
	g.add(c)
	b.groups = append(b.groups, g)
	switch n := len(b.groups); {
	case n == fewGroups:
		if b.shared == nil {
			b.shared = make(map[operationKey]*group, 4*fewGroups)
		}
		for _, g := range b.groups {
			b.share(g)
		}
	case n > fewGroups:
		b.share(g)
	}
	return g
}

func (b *batch) share(g *group) {
	if g.operation.shared() {
		b.shared[g.operation.key()] = g
	}
}

func (b *batch) find(op *operation) *group {
	if len(b.groups) >= fewGroups {
		if g := b.shared[op.key()]; g != nil && (op.takes == nil || g.operation.equal(op)) {
			return g
		}
		return nil
	}
	for i := len(b.groups) - 1; i >= 0; i-- { // an earlier group may be full
		if b.groups[i].operation.equal(op) {
			return b.groups[i]
		}
	}
	return nil
}

// seal closes the batch for further calls. It drops the groups without calls that
// still wait, and reports whether there are others.
func (b *batch) seal() bool {
	kept := b.groups[:0]
	for _, g := range b.groups {
		if g.seal() {
			kept = append(kept, g)
		}
	}
	clear(b.groups[len(kept):])
	b.groups = kept
	return len(kept) > 0
}

// empty makes the batch fit for use again.
func (b *batch) empty() {
	clear(b.groups)
	b.groups = b.groups[:0]
	b.calls = 0
	clear(b.shared)
}
