package redislimit

import (
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// The operations of the script.
const (
	opTake   = 't'
	opPeek   = 'p'
	opRefund = 'r'
	opCharge = 'c'
	opBan    = 'b'
	opUnban  = 'l'
	opReset  = 'x'
	opShow   = 's'
)

// A question is what a caller asks of the script. It is comparable.
type question struct {
	op      byte
	subject string
	plan    *ratelimit.Plan
	cost    int64
	arg     int64                       // of a charge when it was admitted, of a ban its length, in nanoseconds
	ends    [ratelimit.MaxQuotas]uint32 // of a refund: of the windows that were charged, Unix seconds
	charge  *charge
}

// refundOf asks for what the decision was charged.
func refundOf(subject string, d *ratelimit.Decision) question {
	q := question{op: opRefund, subject: subject, plan: d.Plan, cost: d.Cost}
	for i := range d.Plan.Len() {
		if end := d.States[i].Reset; end == int64(uint32(end)) {
			q.ends[i] = uint32(end)
		}
	}
	return q
}

// A charge is one that was admitted elsewhere.
type charge struct {
	id    string // by which the script knows it again
	units [ratelimit.MaxQuotas]int64
}

// shared reports whether callers with equal questions can share an answer.
func (q *question) shared() bool { return q.op == opTake || q.op == opPeek || q.op == opRefund }

// indexed reports whether the operation always needs the index of bans.
func (q *question) indexed() bool { return q.op == opBan || q.op == opUnban || q.op == opReset }

// A call is one caller's part in a group.
type call struct {
	next  *call         // in the group, in the order of arrival
	ready chan struct{} // has room for one: the group was answered
	place int           // in the group, from 0, without the calls that left
	left  bool          // the caller no longer waits, and the group was not yet sent
	state atomic.Uint32
}

// The states of a call that was sent. It ends as answered, or before that as overdue
// if the caller's time was up, or as abandoned if the caller gave up.
const (
	waiting = iota
	answered
	overdue
	abandoned
)

// maxCalls is how many calls a group holds at most: the script has 16 bits for it.
const maxCalls = 1 << 15

// A group is a question, the calls that ask it, and the answer.
type group struct {
	question
	partition   int  // of the subject
	index       bool // the script is given the index of bans
	noBan       bool // the script starts no ban, because it cannot be given the index
	sent        bool
	requests    int // how many calls there are
	first, last *call

	time  int64  // of the server, Unix nanoseconds
	entry string // what the script says of the subject
	err   error
}

func newGroup(q question) *group {
	return &group{question: q, partition: partition(q.subject), index: q.indexed()}
}

func (g *group) add(c *call) {
	if g.last == nil {
		g.first = c
	} else {
		g.last.next = c
	}
	g.last = c
	g.requests++
}

// seal gives the callers that are still there their places, before the group is
// sent. It reports whether there are any.
func (g *group) seal() bool {
	c := g.first
	g.first, g.last, g.requests = nil, nil, 0
	for c != nil {
		next := c.next
		c.next = nil
		if !c.left {
			c.place = g.requests
			g.add(c)
		}
		c = next
	}
	g.sent = true
	return g.requests > 0
}

// finish lets the callers have the answer. It returns how many requests were
// granted too late for their callers.
func (g *group) finish() (late int) {
	for c := g.first; c != nil; {
		next := c.next // the caller may use the call for another question
		if c.state.CompareAndSwap(waiting, answered) {
			c.ready <- struct{}{}
		} else if c.state.Load() == overdue && c.place < g.granted() {
			late++
		}
		c = next
	}
	return late
}

// awaited reports whether a caller still waits for the answer.
func (g *group) awaited() bool {
	for c := g.first; c != nil; c = c.next {
		if c.state.Load() == waiting {
			return true
		}
	}
	return false
}

// granted returns how many requests were admitted, as far as is known.
func (g *group) granted() int {
	if g.op != opTake || g.err != nil {
		return 0
	}
	r := reply{entry: g.entry, requests: g.requests}
	granted, _ := r.counts()
	return granted
}

// maxGroups is how many groups travel together at most. It bounds how long one
// batch takes.
const maxGroups = 1024

// A batch is the groups that travel together.
type batch struct {
	groups []*group
	calls  int
	shared map[question]*group // those that take more calls; empty while there are few groups
	left   time.Time           // when it was sent
}

// few groups are found without a map.
const few = 8

// add enters a call.
func (b *batch) add(q question, c *call) *group {
	b.calls++
	if q.shared() {
		if g := b.find(&q); g != nil && g.requests < maxCalls {
			g.add(c)
			return g
		}
	}
	g := newGroup(q)
	g.add(c)
	b.groups = append(b.groups, g)
	switch n := len(b.groups); {
	case n < few:
	case n == few:
		if b.shared == nil {
			b.shared = make(map[question]*group, 4*few)
		}
		for _, g := range b.groups {
			b.share(g)
		}
	default:
		b.share(g)
	}
	return g
}

func (b *batch) share(g *group) {
	if g.shared() {
		b.shared[g.question] = g
	}
}

func (b *batch) find(q *question) *group {
	if len(b.groups) >= few {
		return b.shared[*q]
	}
	for i := len(b.groups) - 1; i >= 0; i-- { // an earlier one may be full
		if b.groups[i].question == *q {
			return b.groups[i]
		}
	}
	return nil
}

// seal drops the groups that everybody left, and reports whether there are
// others. These take no more calls.
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
