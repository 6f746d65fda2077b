package memory

import (
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// decide decides, under the lock and by the exact time, whatever the fast paths
// leave open. It fills d.
func (l *Limiter) decide(h uint64, name string, d *ratelimit.Decision) error {
	x := ruling{subject: l.lockKey(h)}
	defer x.unlock()
	x.open(d)
	if x.changes(d) {
		if err := x.reserve(d); err != nil {
			return err
		}
	}
	x.rule(name, d)
	return nil
}

// A ruling is how a request is decided under the lock:
//
//	x.open(d)           the slot is frozen, and d says what would become of the request
//	x.reserve(d)        if x.changes(d): there is room for the account
//	x.rule(name, d)     the request is charged, or struck, and the slot is written
type ruling struct {
	subject
	conduct, before conduct
	hasConduct      bool
	reserved        bool // in a group: there is room for the account
}

// open freezes the slot and sets the outcome: Banned, Allowed or Limited.
func (x *ruling) open(d *ratelimit.Decision) {
	x.freeze()
	x.account.expire(x.now)
	x.judge(d)
}

// judge is open for an account that was frozen and has forgotten what has ended.
func (x *ruling) judge(d *ratelimit.Decision) {
	d.Time = int64(x.now)
	x.account.roll(x.now, d.Plan)
	x.conduct, x.hasConduct = x.subject.conduct(x.now)
	x.before = x.conduct
	fits := x.account.states(d)
	banEnds := x.conduct.banEnds(x.now)
	d.BanEnds, d.Receipt.BanReason = int64(banEnds), nil // inspect may have set another
	switch {
	case banEnds > 0:
		d.Outcome, d.Receipt.BanReason = ratelimit.Banned, x.conduct.reason(x.names.all[x.hash])
		x.conduct.until = banEnds // it may be shorter, if the clock stepped back
	case fits:
		d.Outcome = ratelimit.Allowed
	default:
		d.Outcome = ratelimit.Limited
	}
}

// reserve makes room for the account, with what the request is charged.
func (x *ruling) reserve(d *ratelimit.Decision) error {
	if d.Outcome == ratelimit.Allowed {
		x.account.begin(d.Plan, d.Cost)
	}
	return x.subject.reserve()
}

// changes reports whether the account is written.
func (x *ruling) changes(d *ratelimit.Decision) bool {
	return x.found || d.Outcome == ratelimit.Allowed
}

// rule does what the outcome says.
func (x *ruling) rule(name string, d *ratelimit.Decision) {
	switch d.Outcome {
	case ratelimit.Allowed:
		x.account.charge(d)
		x.conduct.admit()
	case ratelimit.Limited:
		engine.Complete(d)
		x.strike(d)
	}
	d.StrikesLeft = strikesLeft(d, &x.conduct)
	engine.Complete(d)
	if x.conduct != x.before || x.hasConduct && x.conduct.empty() {
		// Without room the conduct is not kept, which makeRoom has counted. The
		// decision stands, but is no strike.
		if x.putConduct(x.conduct, dirty) != nil {
			d.Struck = false
		} else if d.Struck && d.Outcome == ratelimit.Banned {
			x.names.keep(x.hash, name, "")
		}
	}
	if x.found {
		x.write(dirty)
	}
	if !x.isNew() && x.meter.version()%rollSteps == 0 { // begin left it; a new slot has swept for itself
		x.sweep(x.now, rollSteps)
	}
}

// strike enters a limited request into the conduct, which may start a ban.
func (x *ruling) strike(d *ratelimit.Decision) {
	c := &x.conduct
	penalty := d.Plan.Penalty()
	if penalty.Strikes == 0 {
		return
	}
	for _, w := range x.account.windows() {
		c.expires = max(c.expires, w.end)
	}
	struck, banned := c.strike(penalty, x.now, windowStart(d))
	if d.Struck = struck; banned {
		d.Outcome, d.BanEnds, d.Receipt.BanReason = ratelimit.Banned, int64(c.until), &reasonStrikes
	}
}
