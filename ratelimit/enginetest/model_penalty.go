package enginetest

import (
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A record holds the strikes and the last ban of a subject until it expires.
type record struct {
	first   time.Time // the first limited request in its window
	strikes int
	since   time.Time     // from when the oldest strike decays, in whole seconds
	level   int           // of the last ban
	until   time.Time     // end of the last ban
	length  time.Duration // of the last ban; 0 once a later request was admitted or was a strike
	reason  string        // of the last ban
	expires time.Time
}

// at returns the record at the time now: the zero record once it has expired.
func (r record) at(now time.Time) record {
	if !r.expires.After(now) {
		return record{}
	}
	return r
}

// banEnds is the end of the last ban. If the clock stepped back, the ban is shortened
// to the length that it had when it began.
func (r record) banEnds(now time.Time) time.Time {
	if r.length == 0 {
		return time.Time{}
	}
	if longest := roundUp(now).Add(r.length); r.until.After(longest) {
		return longest
	}
	return r.until
}

func (s *subject) strikesLeft(now time.Time, plan *ratelimit.Plan) int {
	if plan.Penalty().Strikes == 0 {
		return -1
	}
	r := s.record
	r.decay(now, plan.Penalty().Decay)
	return max(plan.Penalty().Strikes-r.strikes, 0)
}

// decay forgets a strike for each whole length that has passed.
func (r *record) decay(now time.Time, length time.Duration) {
	now = now.Truncate(time.Second)
	if r.since.After(now) {
		r.since = now // the clock stepped back
	}
	for r.strikes > 0 && now.Sub(r.since) >= length {
		r.strikes--
		r.since = r.since.Add(length)
	}
}

// strike counts a limited request. It reports whether the request was a strike, and
// whether it started a ban.
func (s *subject) strike(now time.Time, plan *ratelimit.Plan, d ratelimit.Decision) (struck, banned bool) {
	p := plan.Penalty()
	if p.Strikes == 0 {
		return false, false
	}
	for _, w := range s.windows {
		end, _ := w.ends()
		s.expires = laterOf(s.expires, time.Unix(end, 0))
	}
	engine.Complete(&d)
	start := startOf(time.Unix(d.States[d.Applicable].Reset, 0), plan, d.Applicable)
	ms := now.Truncate(time.Millisecond)
	if s.first.Before(start) || s.first.After(ms) {
		s.first = ms
	}
	if !s.first.Before(start) && ms.Sub(s.first) < p.Grace {
		return false, false
	}
	s.decay(now, p.Decay)
	if s.strikes == 0 {
		s.since = now.Truncate(time.Second)
	}
	s.strikes++
	s.length = 0
	if s.strikes <= p.Strikes {
		return true, false
	}
	level, length := engine.Penalty(p).NextBan(s.level, now.Sub(s.until))
	s.level = level
	s.startBan(now, length, engine.ReasonStrikes)
	s.expires = laterOf(s.expires, s.until.Add(time.Duration(s.level)*p.Forgive))
	return true, true
}

// banByHand starts a ban that keeps the level of the last one. The record outlives this
// ban as long as it would have outlived that one: the plan, which says how soon a level is
// forgiven, is not known here.
func (s *subject) banByHand(now time.Time, length time.Duration, reason string) {
	afterlife := s.expires.Sub(s.until)
	s.startBan(now, length, reason)
	if s.level > 0 {
		s.expires = laterOf(s.expires, s.until.Add(afterlife))
	}
}

func (s *subject) startBan(now time.Time, length time.Duration, reason string) {
	s.strikes, s.reason = 0, reason
	s.until = roundUp(now.Add(length))
	s.length = s.until.Sub(now.Truncate(time.Second))
	s.expires = laterOf(s.expires, s.until)
}
