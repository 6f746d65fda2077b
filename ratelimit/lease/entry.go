package lease

import (
	"slices"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// An entry is what a process knows of a subject under one plan. It has no pointers. A
// Duration is a time of the table's clock.
type entry struct {
	hash       uint64 // of the subject
	asking     uint64 // the number of the question that is under way; 0: none
	plan       uint16 // its number in the table
	kind       kind
	otherPlans bool   // the subject also has windows of other plans: it gets no share
	failing    bool   // the last question had no answer
	struck     bool   // the denial was a strike
	generation uint32 // of the subject's usage, by the last answer of Lease; 0: none
	strikes    int32  // how many more denials do not start a ban
	denied     int32  // denials here since then, which are strikes

	// The last answer of the engine, and for how long it counts.
	asked      time.Duration // when the engine was asked
	engineTime int64         // Unix nanoseconds, then or a little before: the time of its answer, less how long the answer took
	fresh      time.Duration // until then it is not asked again
	stale      time.Duration // until then requests do not wait for the next answer
	ends       time.Duration // from then on the answer counts for nothing
	states     [engine.MaxQuotas]ratelimit.State
	banEnds    int64 // Unix seconds
	units      int64 // that are left of a share
	renewBelow int64 // a share with fewer units is made larger
	refused    int64 // of a denial: what the request cost; cheaper ones may be admitted

	// The traffic: units of about the last two seconds.
	last   time.Duration // when the last request came
	faded  time.Duration // when own and others were last reduced
	own    int64         // that requests to this process cost
	others int64         // that other processes were charged
}

// A kind says what an entry knows.
type kind uint8

const (
	nothing kind = iota
	share        // units are left
	limited      // a request was refused
	banned
)

const (
	minShare      = 8   // units
	minTraffic    = 8   // units in about two seconds; a subject with less is not busy
	limitPerShare = 100 // a share has at most a hundredth of each limit

	shareFresh, shareStale     = 3 * time.Second / 4, time.Second
	limitedFresh, limitedStale = time.Second / 10, time.Second / 5
	bannedFresh, bannedStale   = 4 * time.Second / 5, time.Second

	idle = time.Second // how long an entry without requests is kept
)

// safe returns how long a time by the engine's clock lasts at least by the clock of this process,
// if they drift apart by at most a tenth.
func safe(lasts time.Duration) time.Duration { return lasts - lasts/11 }

// count counts a request in the traffic, which fades by an eighth in each quarter of a second:
// so it covers about the last two seconds.
func (e *entry) count(now time.Duration, cost int64) {
	n := (now - e.faded) / (time.Second / 4)
	if n > 0 {
		e.faded = now
	}
	for ; n > 0 && e.own+e.others > 0; n-- {
		e.own, e.others = e.own*7/8, e.others*7/8
	}
	e.own, e.last = min(e.own+cost, fixedwindow.MaxUnits), now
}

// A step is what a request needs.
type step uint8

const (
	answered step = iota
	renew         // it is answered; the engine is asked about the share in the background
	check         // the share has the units, but the engine must be asked about it first
	ask           // the engine decides
)

// decide answers a request with what the entry knows, if that is enough. If checked, the engine
// was asked about the share just now.
func (e *entry) decide(now time.Duration, cost int64, checked bool, d *ratelimit.Decision) step {
	waits := e.asking != 0 && now < e.stale // for the answer to another request
	switch {
	case now >= e.ends:
		return ask
	case e.kind == share:
		return e.spend(now, cost, checked, d)
	case now >= e.fresh && !waits:
		return ask
	case e.kind == banned:
		e.refuse(now, cost, d, ratelimit.Banned)
		return answered
	case cost < e.refused:
		return ask
	case e.struck && e.denied >= e.strikes && !waits:
		return ask // which starts a ban
	}
	e.refuse(now, cost, d, ratelimit.Limited)
	return answered
}

// spend admits a request with units of the share, if it has them.
func (e *entry) spend(now time.Duration, cost int64, checked bool, d *ratelimit.Decision) step {
	if e.units < cost {
		return ask
	}
	if now >= e.stale && !e.failing && !checked {
		return check
	}
	e.units -= cost
	e.allow(now, cost, d)
	if e.asking == 0 && (checked || now >= e.fresh || e.units < e.renewBelow) {
		return renew
	}
	return answered
}

// timeOfEngine returns what the engine's clock says now, or a little less, in Unix nanoseconds.
func (e *entry) timeOfEngine(now time.Duration) int64 { return e.engineTime + int64(now-e.asked) }

// allow makes d an admission.
func (e *entry) allow(now time.Duration, cost int64, d *ratelimit.Decision) {
	d.Outcome, d.Cost, d.Time, d.States = ratelimit.Allowed, cost, e.timeOfEngine(now), e.states
	d.StrikesLeft = engine.Of(d.Plan).Strikes()
	e.show(d)
	engine.Complete(d)
}

// show adds what is left of the share to what remains in the engine: nobody has used it yet. After
// a Reset elsewhere the sum could be more than the limit.
func (e *entry) show(d *ratelimit.Decision) {
	p := engine.Of(d.Plan)
	for i := range p.Len() {
		if s := &d.States[i]; s.Reset == e.states[i].Reset {
			s.Remaining = min(s.Remaining+e.left(), p.Limit(i))
		}
	}
}

// refuse makes d a denial.
func (e *entry) refuse(now time.Duration, cost int64, d *ratelimit.Decision, o ratelimit.Outcome) {
	d.Outcome, d.Cost, d.Time, d.States, d.BanEnds = o, cost, e.timeOfEngine(now), e.states, e.banEnds
	if d.Struck = o == ratelimit.Limited && e.struck && e.denied < e.strikes; d.Struck {
		e.denied++
	}
	d.StrikesLeft = int(e.strikes - e.denied)
	engine.Complete(d)
}

// excess returns how many units of the share to give back because the traffic has become less.
func (e *entry) excess() int64 {
	if over := e.left() - 2*e.own; over >= minShare && !e.failing {
		return over
	}
	return 0
}

// wants returns how many units to take in advance. The share then has as many as the requests
// of the last two seconds cost, but at most a hundredth of the limit, and half of what is left
// for this process if all processes go on as before.
func (e *entry) wants(p engine.Plan) int64 {
	if e.otherPlans || e.left() == 0 && e.own < minTraffic {
		return 0
	}
	left, size := e.states[0].Remaining, e.own
	for i := range p.Len() {
		left, size = min(left, e.states[i].Remaining), min(size, p.Numbers().Quota(i).Shown/limitPerShare)
	}
	left += e.left()
	part := float64(e.own) / float64(e.own+e.others+3*minShare)
	if size = min(size, int64(float64(left)/2*part)); size >= minShare {
		return max(size-e.left(), 0)
	}
	return 0
}

// learn takes over an answer of the engine, which charged so many more units for the share. It
// returns how many units of the share before are to be given back.
func (e *entry) learn(q *question, d *ratelimit.Decision, more int64, now time.Duration) (unused int64) {
	generation := e.generation // which the answer to a Take does not have
	if !q.take {
		generation, _ = d.Receipt.Generation()
	}
	sameWindows := slices.EqualFunc(e.states[:], d.States[:], func(a, b ratelimit.State) bool { return a.Reset == b.Reset })
	if sameWindows {
		e.learnTraffic(q, d)
	}
	e.otherPlans = d.Receipt.Others[0].Length > 0
	left := e.left()
	if !sameWindows || e.generation != generation || e.otherPlans || d.Outcome == ratelimit.Banned {
		unused, left = left, 0
	}
	// Up to here the entry holds the answer before.
	e.asked, e.engineTime, e.generation = q.asked, d.Time-int64(now-q.asked), generation
	e.states, e.banEnds, e.failing = d.States, d.BanEnds, false
	e.learnStrikes(d)
	switch {
	case d.Outcome == ratelimit.Banned:
		e.know(banned, bannedFresh, bannedStale, time.Duration(d.BanEnds*int64(time.Second)-d.Time))
	case left+more > 0:
		e.know(share, shareFresh, shareStale, untilFirstEnd(d))
		e.units = left + more
		if more > 0 { // otherwise none were asked for, or the engine has no more
			e.renewBelow = (e.units + 1) / 2
		}
	case d.Outcome == ratelimit.Limited && q.cost > 0:
		e.know(limited, limitedFresh, limitedStale, d.RetryAfter)
		e.refused = q.cost
	default:
		e.know(nothing, 0, 0, 0)
	}
	return unused
}

// learnTraffic counts what others were charged since the last answer, in the same windows.
func (e *entry) learnTraffic(q *question, d *ratelimit.Decision) {
	own := -q.back()
	if d.Allowed() {
		own += d.Cost
	}
	charged := e.states[0].Remaining - d.States[0].Remaining
	e.others = min(e.others+max(charged-own, 0), fixedwindow.MaxUnits)
}

// learnStrikes takes over the strikes that the engine knows. Denials here go on from them.
func (e *entry) learnStrikes(d *ratelimit.Decision) {
	e.struck, e.strikes = d.Struck, int32(d.StrikesLeft)
	e.denied = max(min(e.denied, e.strikes), 0)
	if d.Outcome != ratelimit.Limited {
		e.denied = 0
	}
}

// untilFirstEnd returns how long, by the engine's clock, no window of the plan ends.
func untilFirstEnd(d *ratelimit.Decision) time.Duration {
	first := d.States[0].Reset // Unix seconds
	for _, s := range d.States[1:engine.Of(d.Plan).Len()] {
		first = min(first, s.Reset)
	}
	return time.Duration(first*int64(time.Second) - d.Time)
}

// know sets what the entry knows, and for how long.
func (e *entry) know(k kind, fresh, stale, lasts time.Duration) {
	e.kind, e.units, e.renewBelow, e.refused = k, 0, 0, 0
	e.ends = e.asked + safe(lasts)
	e.fresh, e.stale = e.asked+fresh, e.asked+stale
}

// left returns what is left of a share.
func (e *entry) left() int64 {
	if e.kind != share {
		return 0
	}
	return e.units
}
