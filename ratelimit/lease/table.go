package lease

import (
	"slices"
	"strings"
	"sync"

	"github.com/animalstore/gatehouse/internal/plan"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

const (
	tables     = 64
	maxEntries = 1 << 10 // of a table
	maxPlans   = 1 << 8  // of a table
	searched   = 8       // entries that are looked at for room
)

// A table is one of several, each with a lock of its own, and holds what is known of some
// subjects.
type table struct {
	mu      sync.Mutex
	clock   clock
	places  map[uint64]int32 // of entries, by hash
	entries []entry
	plans   []*ratelimit.Plan  // by number; nil: free
	uses    [maxPlans]int32    // of plans, by entries
	names   map[uint64]string  // of the subjects with shares, by hash
	reasons map[uint64]*string // of bans, unless they are strikes
	hand    int                // where the last search for room ended
	asks    uint64             // questions so far
	forgets uint64             // how often answers under way became void
	units   [1 << 12]uint8     // that subjects without an entry were asked for, by hash
	counted int64              // since when
	stats   Stats

	_ [64]byte // another processor changes the next table
}

// A question is what the engine is asked.
type question struct {
	id    uint64 // 0: another one is under way, and the answer does not matter
	asked int64
	cost  int64
	take  bool // it is a Take, of which the answer has no generation
	terms engine.Terms

	unknown bool   // the subject has no entry, and gets one if it is refused
	forgets uint64 // of the table when it was asked
}

// back returns how many units it gives back.
func (q *question) back() int64 {
	if q.terms.Back == nil {
		return 0
	}
	return q.terms.Back.Cost
}

// An orphan is what the engine has to be told when no request asks: units of a share that
// will not be used, and strikes.
type orphan struct {
	subject string
	charge  ratelimit.Decision // its Cost is what is given back
	denied  int32
}

// entry returns the entry of a hash under a plan, or nil if there is no room. A new one begins
// with so much traffic. What is left of a share under another plan becomes an orphan.
func (t *table) entry(h uint64, p *ratelimit.Plan, now, own int64, orphans *[]orphan) *entry {
	if i, found := t.places[h]; found {
		e := &t.entries[i]
		if t.plans[e.plan] == p {
			return e
		}
		t.drop(int(i), orphans)
	}
	number := slices.Index(t.plans, p)
	if number < 0 {
		if number = slices.Index(t.plans, nil); number < 0 {
			if number = len(t.plans); number == maxPlans {
				return nil
			}
			t.plans = append(t.plans, nil)
		}
	}
	if len(t.entries) == maxEntries && !t.makeRoom(now, orphans) {
		return nil
	}
	t.plans[number] = p
	t.uses[number]++
	t.places[h] = int32(len(t.entries))
	t.entries = append(t.entries, entry{hash: h, plan: uint16(number), last: now, faded: now, own: own})
	return &t.entries[len(t.entries)-1]
}

// rare reports whether the subject of a hash, of which cost units are asked for, has no entry,
// and too little traffic for a share. Subjects may be counted as one.
func (t *table) rare(h uint64, now, cost int64) bool {
	if _, found := t.places[h]; found {
		return false
	}
	if now-t.counted >= 2*second {
		clear(t.units[:])
		t.counted = now
	}
	n := &t.units[h/tables%uint64(len(t.units))]
	*n = uint8(min(int64(*n)+cost, 2*smallest))
	return *n < 2*smallest
}

// find returns the entry of a hash under a plan, or nil.
func (t *table) find(h uint64, p *ratelimit.Plan) *entry {
	if i, found := t.places[h]; found && t.plans[t.entries[i].plan] == p {
		return &t.entries[i]
	}
	return nil
}

// makeRoom drops an entry that was not used lately and has no share, if it finds one.
func (t *table) makeRoom(now int64, orphans *[]orphan) bool {
	for range searched {
		t.hand = (t.hand + 1) % len(t.entries)
		if e := &t.entries[t.hand]; e.left() == 0 && now-e.last > second {
			t.drop(t.hand, orphans)
			return true
		}
	}
	return false
}

// drop removes the i-th entry. The last one takes its place.
func (t *table) drop(i int, orphans *[]orphan) {
	e := &t.entries[i]
	t.abandon(e, orphans)
	delete(t.reasons, e.hash)
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

// charge returns what names so many units of the share of an entry to the engine.
func (t *table) charge(e *entry, units int64) ratelimit.Decision {
	d := ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: t.plans[e.plan], Cost: units, Time: e.time, States: e.states}
	d.Receipt.SetGeneration(e.generation)
	return d
}

// abandon makes an orphan of what an entry has that the engine must be told.
func (t *table) abandon(e *entry, orphans *[]orphan) {
	if e.left() > 0 || e.denied > 0 {
		*orphans = append(*orphans, orphan{t.names[e.hash], t.charge(e, e.left()), e.denied})
	}
	e.kind, e.units, e.denied = nothing, 0, 0
	delete(t.names, e.hash)
}

// question returns what to ask about an entry, for a request, or for the cost 0 for none. It
// asks for no share: one of a client that goes away meanwhile would be lost.
func (t *table) question(e *entry, now, cost int64) (q question) {
	q = question{asked: now, cost: cost, take: cost > 0}
	t.stats.Asked++
	if e.asking != 0 {
		return q
	}
	t.asks++
	q.id, e.asking = t.asks, t.asks
	// What comes back is lost if the engine does not answer.
	if e.left() > 0 && (now >= e.ends || e.units < cost && !e.failing) {
		t.giveIn(e, now, e.left(), &q)
	}
	q.terms.Denied = int(e.denied)
	q.take = cost > 0 && e.left() == 0 && q.terms == engine.Terms{}
	return q
}

// giveIn has a question give back units of the share.
func (t *table) giveIn(e *entry, now, units int64, q *question) {
	charge := t.charge(e, units)
	q.terms.Back = &charge
	if e.units -= units; now >= e.ends {
		t.stats.Expired += uint64(units)
	}
}

// share returns the question for more units of a share, or fewer.
func (t *table) share(e *entry, now int64) question {
	q := t.question(e, now, 0)
	if over := e.excess(); over > 0 {
		t.giveIn(e, now, over, &q)
	}
	q.terms.More = t.wants(e)
	return q
}

// wants returns the size of the share to ask for.
func (t *table) wants(e *entry) int64 { return e.wants(of(t.plans[e.plan])) }

// learn has the table know an answer, and makes it the decision about the request. Units that
// are of no use become orphans.
func (t *table) learn(h uint64, subject string, q *question, d *ratelimit.Decision, orphans *[]orphan) {
	more := int64(0)
	if d.Allowed() {
		more = d.Cost - q.cost
	}
	e := t.find(h, d.Plan)
	mine := e != nil && e.asking == q.id && q.id > 0 // otherwise it was forgotten meanwhile
	if e == nil && q.unknown && q.forgets == t.forgets {
		e = t.entry(h, d.Plan, q.asked, 0, orphans)
		mine = e != nil
	}
	if more > 0 && (!mine || d.Receipt.Others[0].Length > 0) {
		charge := *d
		charge.Cost, more = more, 0
		*orphans = append(*orphans, orphan{subject, charge, 0})
	}
	if mine {
		e.asking = 0
		t.stats.Returned += uint64(q.back())
		before := t.charge(e, 0)
		if before.Cost = e.learn(q, d, more); before.Cost > 0 {
			*orphans = append(*orphans, orphan{subject, before, 0})
		}
		t.keep(e, subject, d.Receipt.BanReason)
	}
	d.Receipt.SetGeneration(0)
	if d.Allowed() {
		d.Cost = q.cost
		if e != nil {
			e.show(d)
		}
		engine.Complete(d)
	}
}

// keep keeps what an entry needs that has pointers.
func (t *table) keep(e *entry, subject string, reason *string) {
	switch {
	case e.kind != share && !e.struck:
		delete(t.names, e.hash)
	case t.names[e.hash] == "":
		t.names[e.hash] = strings.Clone(subject)
	}
	if e.kind == banned && reason != &plan.Strikes {
		t.reasons[e.hash] = reason
	} else {
		delete(t.reasons, e.hash)
	}
}

// fail notes that a question had no answer. What is left of the share then serves for longer,
// and what the engine was told is not told again.
func (t *table) fail(h uint64, q *question, now int64, p *ratelimit.Plan) {
	e := t.find(h, p)
	if e == nil {
		return
	}
	if e.asking == q.id {
		e.asking, e.denied = 0, e.denied-int32(q.terms.Denied)
	}
	e.failing, e.fresh, e.size = true, now+limitedFresh, 0
}

// sweep drops what was not used lately, and collects the shares that have ended or are idle.
func (t *table) sweep(now int64, orphans *[]orphan) {
	for i := len(t.entries) - 1; i >= 0; i-- {
		e := &t.entries[i]
		if left := e.left(); left > 0 && now >= e.ends {
			t.stats.Expired += uint64(left)
			t.abandon(e, orphans)
		}
		if now-e.last >= idle {
			t.drop(i, orphans)
		}
	}
}
