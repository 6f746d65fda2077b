package ratelimittest

import (
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// maxWindows is how many windows of one subject are counted at once.
const maxWindows = 2 * ratelimit.MaxQuotas

// A Model is a limiter that is slow and obviously right: one lock, maps, and
// the rules in the order in which the documentation has them. Engines are compared with it.
// It never forgets a subject. It is safe for concurrent use.
type Model struct {
	now      func() time.Time
	mu       sync.Mutex
	subjects map[string]*subject
}

// NewModel returns a model without subjects that reads its time from now.
func NewModel(now func() time.Time) *Model {
	return &Model{now: now, subjects: map[string]*subject{}}
}

type subject struct {
	windows map[time.Duration]*usage // by length
	record
}

type usage struct {
	used int64
	end  time.Time
}

// A record holds the strikes and the last ban of a subject until it expires.
type record struct {
	first   time.Time // the first limited request in its window
	strikes int
	since   time.Time     // from when the oldest strike decays, in whole seconds
	level   int           // of the last ban
	until   time.Time     // end of the last ban
	length  time.Duration // of the last ban; 0 once a request was admitted, or a strike, after it
	expires time.Time
}

func (m *Model) subject(name string) (*subject, time.Time) {
	now := m.now()
	s := m.subjects[name]
	if s == nil {
		s = &subject{windows: map[time.Duration]*usage{}}
		m.subjects[name] = s
	}
	return s, now
}

// at returns the record as it stands: nothing once it has expired.
func (r record) at(now time.Time) record {
	if !r.expires.After(now) {
		return record{}
	}
	return r
}

// Take implements [ratelimit.Limiter].
func (m *Model) Take(_ context.Context, name string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if err := plan.Check(name, cost); err != nil {
		return ratelimit.Decision{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	s.record = s.record.at(now)
	if s.length > 0 {
		s.until = s.banEnds(now) // cut for good if the clock stepped back
	}
	s.expire(now)
	s.open(now, plan)
	d, fits := s.view(now, plan, cost)
	switch {
	case d.Outcome == ratelimit.Banned:
	case fits:
		for _, w := range s.windows {
			w.used = min(w.used+cost, ratelimit.MaxLimit)
		}
		s.strikes, s.length = 0, 0
		d, _ = s.view(now, plan, cost)
		d.Outcome = ratelimit.Allowed
	default:
		if s.strike(now, plan, d) {
			d, _ = s.view(now, plan, cost)
		} else {
			d.StrikesLeft = s.strikesLeft(now, plan)
		}
	}
	d.Settle()
	return d, nil
}

// Peek implements [ratelimit.Peeker].
func (m *Model) Peek(_ context.Context, name string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	if err := plan.Check(name, 1); err != nil {
		return ratelimit.Decision{}, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	s, now := m.subject(name)
	copied := &subject{windows: map[time.Duration]*usage{}, record: s.record.at(now)}
	for length, w := range s.windows {
		copied.windows[length] = &usage{w.used, w.end}
	}
	copied.expire(now)
	copied.open(now, plan)
	d, _ := copied.view(now, plan, 1)
	d.Settle()
	return d, nil
}

// expire drops the windows that have ended, and those in which nothing was used.
// A window in the future is left at most one window ahead.
func (s *subject) expire(now time.Time) {
	for length, w := range s.windows {
		if next := endOf(now, length).Add(length); w.end.After(next) {
			w.end = next
		}
		if !w.end.After(now) || w.used == 0 {
			delete(s.windows, length)
		}
	}
}

// open opens those windows of the plan that are missing.
func (s *subject) open(now time.Time, plan *ratelimit.Plan) {
	for _, q := range plan.Quotas() {
		if s.windows[q.Window] == nil {
			if len(s.windows) == maxWindows {
				s.dropOther(plan)
			}
			s.windows[q.Window] = &usage{end: endOf(now, q.Window)}
		}
	}
}

// dropOther drops the window that ends first of those that are not the plan's;
// of two that end together, the shorter one.
func (s *subject) dropOther(plan *ratelimit.Plan) {
	var drop time.Duration
	for _, length := range slices.Sorted(maps.Keys(s.windows)) {
		ours := slices.ContainsFunc(plan.Quotas(), func(q ratelimit.Quota) bool { return q.Window == length })
		if !ours && (drop == 0 || s.windows[length].end.Before(s.windows[drop].end)) {
			drop = length
		}
	}
	delete(s.windows, drop)
}

// view tells what a request of the given cost would meet.
func (s *subject) view(now time.Time, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, fits bool) {
	d = ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: plan, Cost: cost, Time: now.UnixNano()}
	fits = true
	for i, q := range plan.Quotas() {
		w := s.windows[q.Window]
		left := max(q.Limit-w.used, 0)
		d.States[i] = ratelimit.State{Remaining: left, Reset: w.end.Unix()}
		fits = fits && left >= cost
	}
	if !fits {
		d.Outcome = ratelimit.Limited
	}
	if ends := s.banEnds(now); ends.After(now) {
		d.Outcome = ratelimit.Banned
		d.BanEnds = ends.Unix()
	}
	d.StrikesLeft = s.strikesLeft(now, plan)
	if d.Outcome == ratelimit.Banned && d.StrikesLeft > 0 {
		d.StrikesLeft = 0
	}
	return d, fits
}

// banEnds is the end of the last ban. No ban is longer than it was when it
// began, even if the clock stepped back.
func (r record) banEnds(now time.Time) time.Time {
	if r.length == 0 {
		return time.Time{}
	}
	if longest := ceil(now).Add(r.length); r.until.After(longest) {
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

// strike counts a limited request and reports whether it started a ban.
func (s *subject) strike(now time.Time, plan *ratelimit.Plan, d ratelimit.Decision) bool {
	p := plan.Penalty()
	if p.Strikes == 0 {
		return false
	}
	for _, w := range s.windows {
		s.expires = later(s.expires, w.end)
	}
	d.Settle()
	q := plan.Quota(d.Applicable)
	start := time.Unix(d.States[d.Applicable].Reset, 0).Add(-q.Window)
	ms := now.Truncate(time.Millisecond)
	if s.first.Before(start) || s.first.After(ms) {
		s.first = ms
	}
	if !s.first.Before(start) && ms.Sub(s.first) < p.Grace {
		return false
	}
	s.decay(now, p.Decay)
	if s.strikes == 0 {
		s.since = now.Truncate(time.Second)
	}
	s.strikes++
	s.length = 0
	if s.strikes <= p.Strikes {
		return false
	}
	s.level = p.Level(s.level, now.Sub(s.until))
	s.startBan(now, p.BanLength(s.level))
	s.expires = later(s.expires, s.until.Add(time.Duration(s.level)*p.Forgive))
	return true
}

func (s *subject) startBan(now time.Time, length time.Duration) {
	s.first, s.strikes = time.Time{}, 0
	s.until = ceil(now.Add(length))
	s.length = s.until.Sub(now.Truncate(time.Second))
	s.expires = later(s.expires, s.until)
}

// endOf returns the end of the window of the given length that t is in.
// Windows are counted from 1 January 1970.
func endOf(t time.Time, length time.Duration) time.Time {
	seconds := int64(length / time.Second)
	windows := t.Unix() / seconds // that were over
	return time.Unix((windows+1)*seconds, 0)
}

func ceil(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

func later(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}
