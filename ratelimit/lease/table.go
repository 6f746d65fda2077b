package lease

import (
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const (
	tables     = 64
	maxEntries = 1 << 10 // of a table
	maxPlans   = 1 << 8  // of a table
)

// A table is one of several, each with a lock of its own, and holds what is known of some
// subjects.
type table struct {
	mu      sync.Mutex
	clock   clock
	closed  bool             // no entry is made any more
	places  map[uint64]int32 // of entries, by hash
	entries []entry
	names   map[uint64]string         // of the subjects of entries, by hash
	reasons map[uint64]*string        // of bans, by hash
	plans   [maxPlans]*ratelimit.Plan // by number; nil: free
	uses    [maxPlans]int32           // of plans, by entries
	queue   []question                // to ask in the background
	asks    uint64                    // questions so far
	demand  [1 << 12]uint8            // by hash: what requests of subjects without an entry cost, at most minTraffic
	since   time.Duration             // when all demand was 0
	stats   Stats

	_ [64]byte // another processor changes the next table
}

// A question is what the engine is asked about a subject.
type question struct {
	id      uint64 // 0: no entry waits for the answer
	subject string
	plan    *ratelimit.Plan
	asked   time.Duration // by the table's clock
	cost    int64
	take    bool // it is a Take, whose answer has no generation
	terms   engine.Terms
}

// back returns how many units it gives back.
func (q *question) back() int64 {
	if q.terms.Back == nil {
		return 0
	}
	return q.terms.Back.Cost
}

// entry returns the entry of a subject under a plan, for a request with a cost. It is nil if the
// subject is not busy, or there is no room.
func (t *table) entry(h uint64, subject string, p *ratelimit.Plan, now time.Duration, cost int64) *entry {
	i, found := t.places[h]
	switch {
	case found && t.plans[t.entries[i].plan] == p:
		return &t.entries[i]
	case found:
		t.drop(int(i))
	case !t.busy(h, now, cost):
		return nil
	}
	return t.add(h, subject, p, now, max(minTraffic-cost, 0))
}

// busy reports whether the requests of a subject without an entry, with this one, cost so much
// within two seconds that it gets one. Some subjects are counted together.
func (t *table) busy(h uint64, now time.Duration, cost int64) bool {
	if now-t.since >= 2*time.Second {
		clear(t.demand[:])
		t.since = now
	}
	n := &t.demand[h/tables%uint64(len(t.demand))]
	*n = uint8(min(int64(*n)+cost, minTraffic))
	return *n == minTraffic
}

// add returns a new entry with so much traffic. It is nil if there is one, or no room.
func (t *table) add(h uint64, subject string, p *ratelimit.Plan, now time.Duration, own int64) *entry {
	number := slices.Index(t.plans[:], p)
	if number < 0 {
		number = slices.Index(t.plans[:], nil)
	}
	_, found := t.places[h]
	if found || t.closed || number < 0 || len(t.entries) == maxEntries {
		return nil
	}
	t.plans[number] = p
	t.uses[number]++
	t.places[h] = int32(len(t.entries))
	t.names[h] = strings.Clone(subject)
	t.entries = append(t.entries, entry{hash: h, plan: uint16(number), last: now, faded: now, own: own})
	return &t.entries[len(t.entries)-1]
}

// find returns the entry of a hash under a plan, or nil.
func (t *table) find(h uint64, p *ratelimit.Plan) *entry {
	if i, found := t.places[h]; found && t.plans[t.entries[i].plan] == p {
		return &t.entries[i]
	}
	return nil
}

// drop removes the i-th entry. The last one takes its place.
func (t *table) drop(i int) {
	e := &t.entries[i]
	t.abandon(e)
	delete(t.reasons, e.hash)
	delete(t.names, e.hash)
	delete(t.places, e.hash)
	if t.uses[e.plan]--; t.uses[e.plan] == 0 {
		t.plans[e.plan] = nil
	}
	last := len(t.entries) - 1
	if i != last {
		t.entries[i] = t.entries[last]
		t.places[t.entries[i].hash] = int32(i)
	}
	t.entries = t.entries[:last]
}

// abandon queues what the engine must know of an entry: units of the share that will not be
// used, and strikes. They are sent once only: without an answer the engine may still have them.
func (t *table) abandon(e *entry) {
	if e.left() > 0 || e.denied > 0 {
		t.giveBack(t.names[e.hash], t.charge(e), e.left(), e.denied)
	}
	e.kind, e.units, e.denied = nothing, 0, 0
}

// giveBack queues units of a charge to be given back, and strikes to be counted.
func (t *table) giveBack(subject string, charge ratelimit.Decision, units int64, denied int32) {
	charge.Cost = units
	t.queue = append(t.queue, question{subject: subject, plan: charge.Plan, terms: engine.Terms{Back: &charge, Denied: int(denied)}})
}

// charge returns the answer of the engine by which it knows the charge of an entry's share.
func (t *table) charge(e *entry) ratelimit.Decision {
	d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: t.plans[e.plan], Time: e.engineTime, States: e.states}
	d.Receipt.SetGeneration(e.generation)
	return d
}

// question returns what to ask about an entry for a request, or with the cost 0 without one. It
// asks for no share, which would be lost if the client went away.
func (t *table) question(e *entry, now time.Duration, cost int64) question {
	q := question{subject: t.names[e.hash], plan: t.plans[e.plan], asked: now, cost: cost, take: cost > 0}
	t.stats.Asked++
	if e.asking != 0 {
		return q
	}
	t.asks++
	q.id, e.asking = t.asks, t.asks
	// If the engine does not answer, the units that it gets back are lost.
	if e.left() > 0 && (now >= e.ends || e.units < cost && !e.failing) {
		t.returnUnits(e, now, e.left(), &q)
	}
	q.terms.Denied = int(e.denied)
	e.strikes, e.denied = e.strikes-e.denied, 0 // sent once only, as by abandon
	q.take = cost > 0 && e.left() == 0 && q.terms == engine.Terms{}
	return q
}

// returnUnits makes a question give back units of the share.
func (t *table) returnUnits(e *entry, now time.Duration, units int64, q *question) {
	charge := t.charge(e)
	charge.Cost = units
	q.terms.Back = &charge
	if e.units -= units; now >= e.ends {
		t.stats.Expired += uint64(units)
	}
}

// renew queues a question that makes the share larger or smaller.
func (t *table) renew(e *entry, now time.Duration) {
	q := t.question(e, now, 0)
	if over := e.excess(); over > 0 {
		t.returnUnits(e, now, over, &q)
	}
	q.terms.More = e.wants(engine.Of(q.plan))
	t.queue = append(t.queue, q)
}

// learn takes over an answer, and makes it the decision about the request. Units that cannot be
// used are given back. A subject that was admitted may then get a share.
func (t *table) learn(h uint64, q *question, d *ratelimit.Decision, now time.Duration) {
	t.stats.Returned += uint64(q.back())
	more := int64(0)
	if d.Allowed() {
		more = d.Cost - q.cost
	}
	e := t.find(h, q.plan)
	waits := e != nil && q.id > 0 && e.asking == q.id // otherwise it was dropped meanwhile
	if more > 0 && (!waits || d.Receipt.Others[0].Length > 0) {
		t.giveBack(q.subject, *d, more, 0)
		more = 0
	}
	if waits {
		e.asking = 0
		before := t.charge(e)
		if unused := e.learn(q, d, more, now); unused > 0 {
			t.giveBack(q.subject, before, unused, 0)
		}
		if e.kind == banned {
			t.reasons[h] = d.Receipt.BanReason
		}
	}
	d.Receipt.SetGeneration(0)
	if !d.Allowed() {
		return
	}
	if e != nil {
		e.show(d)
		if q.cost > 0 && e.asking == 0 && e.wants(engine.Of(q.plan)) > 0 {
			t.renew(e, now)
		}
	}
	engine.Complete(d)
}

// fail notes that a question had no answer. What is left of the share then serves without
// checks, also while another question waits for longer: unless it was a Take, whose caller may
// have gone away. A denial is not remembered for longer, which would hide the failures from package
// failover.
func (t *table) fail(h uint64, q *question, now time.Duration) {
	e := t.find(h, q.plan)
	if e == nil {
		return
	}
	mine := q.id > 0 && e.asking == q.id
	if mine {
		e.asking = 0
	}
	if e.kind == share && (mine || !q.take) {
		e.failing, e.fresh, e.renewBelow = true, now+limitedFresh, 0
	}
}

// sweep drops what was not used lately, or everything when the Limiter closes, and gives back
// the shares that have ended.
func (t *table) sweep(now time.Duration, closes bool) {
	t.closed = t.closed || closes
	for i := len(t.entries) - 1; i >= 0; i-- {
		e := &t.entries[i]
		if left := e.left(); left > 0 && now >= e.ends {
			t.stats.Expired += uint64(left)
			t.abandon(e)
		}
		if closes || now-e.last >= idle {
			t.drop(i)
		}
	}
}

// A clock tells how long a process has run, and never less than that. Between
// two readings that is the larger advance of the monotonic clock, which stands still while a
// machine is suspended, and the wall clock, which does not. So a share ends too early after the
// wall clock was set forward, and never too late.
type clock struct {
	last   reading
	passed time.Duration
}

// A reading is what both clocks said at once: the time since some beginning.
type reading struct{ mono, wall time.Duration }

// system reads the clocks of the system.
func system() reading {
	now := time.Now()
	return reading{now.Sub(began), time.Duration(now.UnixNano())}
}

var began = time.Now()

// at returns the time of a reading. If there was a later one, it is the time of that.
func (c *clock) at(r reading) time.Duration {
	if r.mono >= c.last.mono {
		c.passed += max(r.mono-c.last.mono, r.wall-c.last.wall)
		c.last = r
	}
	return c.passed
}
