package redislimit

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/fixedwindow"
)

// A reply is what the script answered to a group, for one of its callers.
type reply struct {
	time     int64  // of the server, Unix nanoseconds
	entry    string // as cutEntry returned it
	requests int    // how many there were
	place    int    // of the caller among them, from 0
}

// counts returns how many requests were granted, and then limited; the others
// were banned.
func (r *reply) counts() (granted, limited int) {
	if r.entry[0] == done {
		return r.requests, 0
	}
	return int(u16(r.entry[1:])), int(u16(r.entry[3:]))
}

// subject reads the subject's value.
func (r *reply) subject() (subject, error) {
	switch r.entry[0] {
	case done:
		return readSubject(r.entry[2:])
	case denied, spared:
		return readSubject(r.entry[1+countsSize+1:])
	}
	return subject{}, unavailable(errReply)
}

// decision works out what became of the caller's request: the requests before it
// were decided at the same instant.
func (r *reply) decision(plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, err error) {
	s, err := r.subject()
	if err != nil {
		return d, err
	}
	d = ratelimit.Decision{Plan: plan, Cost: cost, Time: r.time, StrikesLeft: -1}
	granted, limited := r.counts()
	penalty := plan.Penalty()
	var later int64 // units granted to requests after this one
	switch {
	case r.place < granted:
		d.Outcome = ratelimit.Allowed
		later = int64(granted-1-r.place) * cost
		d.StrikesLeft = penalty.Strikes
	case r.place < granted+limited:
		d.Outcome = ratelimit.Limited
		strikes, since := s.strikes, s.since // after the last of the limited ones
		if granted+limited < r.requests {
			strikes, since = penalty.Strikes, fixedwindow.Seconds(r.time) // the ban has taken them
		}
		if r.entry[0] == denied {
			strikes -= granted + limited - 1 - r.place
		}
		d.StrikesLeft = penalty.StrikesLeft(strikes, since, fixedwindow.Seconds(r.time))
	default:
		d.Outcome = ratelimit.Banned
		d.StrikesLeft = 0
		d.BanEnds = s.banEnds(r.time)
		if d.BanEnds == 0 {
			return d, unavailable(errReply)
		}
	}
	if penalty.Strikes == 0 {
		d.StrikesLeft = -1
	}
	s.states(&d, later)
	d.Settle()
	return d, nil
}

// refund returns a group that gives back what so many of the group's requests were
// charged, or nil if what the script says of the subject cannot be read.
func (g *group) refund(requests int) *group {
	r := reply{time: g.time, entry: g.entry}
	s, err := r.subject()
	if err != nil {
		return nil
	}
	d := ratelimit.Decision{Plan: g.plan, Cost: g.cost, Time: g.time}
	s.states(&d, 0)
	back := newGroup(refundOf(g.subject, &d))
	back.requests = requests
	return back
}

// view works out what a request would meet: the answer to a peek.
func (r *reply) view(plan *ratelimit.Plan) (d ratelimit.Decision, err error) {
	s, err := r.subject()
	if err != nil {
		return d, err
	}
	d = ratelimit.Decision{Plan: plan, Cost: 1, Time: r.time}
	fits := s.states(&d, 0)
	d.BanEnds = s.banEnds(r.time)
	d.StrikesLeft = plan.Penalty().StrikesLeft(s.strikes, s.since, fixedwindow.Seconds(r.time))
	switch {
	case d.BanEnds > 0:
		d.Outcome = ratelimit.Banned
		d.StrikesLeft = min(d.StrikesLeft, 0)
	case fits:
		d.Outcome = ratelimit.Allowed
	default:
		d.Outcome = ratelimit.Limited
	}
	d.Settle()
	return d, nil
}

// states puts what each quota has left into d, and reports whether d.Cost fits
// into all of them. Of the units that s says were used, unused were not yet.
func (s *subject) states(d *ratelimit.Decision, unused int64) (fits bool) {
	fits = true
	i := 0
	for q := range d.Plan.Len() {
		quota := d.Plan.Quota(q)
		for i < s.n && s.windows[i].length < quota.Window {
			i++
		}
		state := ratelimit.State{Remaining: quota.Limit, Reset: fixedwindow.End(d.Time, quota.Window)}
		if i < s.n && s.windows[i].length == quota.Window {
			w := s.windows[i]
			state = ratelimit.State{Remaining: max(quota.Limit-w.used+unused, 0), Reset: w.end}
		}
		d.States[q] = state
		fits = fits && state.Remaining >= d.Cost
	}
	return fits
}

// banEnds returns the end of the ban in force at the time now, in Unix seconds,
// or 0.
func (r *record) banEnds(now int64) int64 {
	ends := min(r.ends, fixedwindow.SecondsUp(now)+r.length)
	if r.length == 0 || r.expires*int64(time.Second) <= now || ends*int64(time.Second) <= now {
		return 0
	}
	return ends
}
