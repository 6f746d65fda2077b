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
	stats   Stats

	_ [64]byte // another processor changes the next table
}

// A question is what the engine is asked.
type question struct {
	id    uint64 // 0: another one is under way, and the answer does not matter
	asked int64
	cost  int64
	terms engine.Terms
}

// plain reports whether the question is a Take.
func (q *question) plain() bool { return q.terms == engine.Terms{} }

// back returns how many units it gives back.
func (q *question) back() int64 {
	if q.terms.Back == nil {
		return 0
	}
	return q.terms.Back.Cost
}

// An orphan is a share that nobody will use.
type orphan struct {
	subject string
	charge  ratelimit.Decision // its Cost is what is given back
}

// entry returns the entry of a hash under a plan, or nil if there is no room. What is left
// of a share under another plan becomes an orphan.
func (t *table) entry(h uint64, p *ratelimit.Plan, now int64, orphans *[]orphan) *entry {
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
	if len(t.entries) == maxEntries && !t.makeRoom(now) {
		return nil
	}
	t.plans[number] = p
	t.uses[number]++
	t.places[h] = int32(len(t.entries))
	t.entries = append(t.entries, entry{hash: h, plan: uint16(number), last: now, halved: now})
	return &t.entries[len(t.entries)-1]
}

// find returns the entry of a hash under a plan, or nil.
func (t *table) find(h uint64, p *ratelimit.Plan) *entry {
	if i, found := t.places[h]; found && t.plans[t.entries[i].plan] == p {
		return &t.entries[i]
	}
	return nil
}

// makeRoom drops an entry that was not used lately and has no share, if it finds one.
func (t *table) makeRoom(now int64) bool {
	for range searched {
		t.hand = (t.hand + 1) % len(t.entries)
		if e := &t.entries[t.hand]; e.left() == 0 && now-e.last > second {
			t.drop(t.hand, nil)
			return true
		}
	}
	return false
}

// drop removes the i-th entry. The last one takes its place.
func (t *table) drop(i int, orphans *[]orphan) {
	e := &t.entries[i]
	t.abandon(e, e.left(), orphans)
	delete(t.names, e.hash)
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

// abandon makes units of the share of an entry an orphan.
func (t *table) abandon(e *entry, units int64, orphans *[]orphan) {
	if units > 0 {
		*orphans = append(*orphans, orphan{t.names[e.hash], t.charge(e, units)})
	}
}

// question returns what to ask about an entry. Without a request, for the cost 0, it asks for
// a share: a client that goes away while its request is decided strands none.
func (t *table) question(e *entry, now, cost int64) (q question) {
	q = question{asked: now, cost: cost}
	t.stats.Asked++
	if e.asking != 0 {
		return q
	}
	t.asks++
	q.id, e.asking = t.asks, t.asks
	q.terms.Denied = int(e.denied)
	if cost == 0 {
		q.terms.More = t.wants(e)
	}
	if left := e.left(); left > 0 && (now >= e.ends || left < cost) {
		if now >= e.ends {
			t.stats.Expired += uint64(left)
		}
		back := t.charge(e, left)
		q.terms.Back = &back
		e.kind, e.units = nothing, 0
	}
	e.denied = 0
	return q
}

// wants returns the size of the share to ask for.
func (t *table) wants(e *entry) int64 { return e.wants(of(t.plans[e.plan]).Len()) }

// learn has the table know an answer, and makes it the decision about the request. Units that
// are of no use become orphans.
func (t *table) learn(h uint64, subject string, q *question, d *ratelimit.Decision, orphans *[]orphan) {
	more := int64(0)
	if d.Allowed() {
		more = d.Cost - q.cost
	}
	e := t.find(h, d.Plan)
	switch {
	case e != nil && e.asking == q.id && q.id > 0:
		e.asking = 0
		before := *e
		t.abandon(&before, e.learn(q, d), orphans)
		t.keep(e, subject, d.Receipt.BanReason)
	case more > 0: // the subject was forgotten meanwhile
		charge := *d
		charge.Cost = more
		*orphans = append(*orphans, orphan{strings.Clone(subject), charge})
	}
	if d.Allowed() {
		d.Cost = q.cost
		d.Receipt.SetGeneration(0)
		if e != nil {
			e.show(d)
		}
		engine.Complete(d)
	}
}

// keep keeps what an entry needs that has pointers.
func (t *table) keep(e *entry, subject string, reason *string) {
	switch {
	case e.kind != share:
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

// fail notes that a question had no answer, and reports whether the request is answered from
// what is left of the share.
func (t *table) fail(h uint64, q *question, now int64, p *ratelimit.Plan, d *ratelimit.Decision) bool {
	e := t.find(h, p)
	if e != nil && e.asking == q.id {
		e.asking = 0
	}
	if e == nil || e.left() == 0 || now >= e.ends {
		return false
	}
	e.failing, e.fresh, e.size = true, now+limitedFresh, 0
	if q.cost == 0 || e.units < q.cost {
		return false
	}
	e.units -= q.cost
	*d = ratelimit.Decision{Plan: p}
	e.allow(now, q.cost, d)
	return true
}

// sweep drops what was not used lately, and collects the shares that have ended or are idle.
func (t *table) sweep(now int64, orphans *[]orphan) {
	for i := len(t.entries) - 1; i >= 0; i-- {
		switch e := &t.entries[i]; {
		case e.asking != 0:
		case now-e.last >= idle:
			t.drop(i, orphans)
		case e.left() > 0 && now >= e.ends:
			t.stats.Expired += uint64(e.units)
			t.abandon(e, e.units, orphans)
			e.kind, e.units = nothing, 0
			delete(t.names, e.hash)
		}
	}
}
