package enginetest

import (
	"context"
	"maps"
	"math/big"
	"slices"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// maxWindows is the largest number of windows of one subject that are counted at once.
const maxWindows = 2 * maxQuotas

const maxQuotas = len(ratelimit.Decision{}.States)

// A Model is a limiter that is slow and obviously right: one lock, maps, and the rules
// in the order of the documentation. Engines are compared with it. It never forgets a
// subject. It is safe for concurrent use.
type Model interface {
	ratelimit.Limiter
	engine.MultiTaker
	engine.Peeker
	engine.Adjuster
	engine.Leaser
	engine.Banner
	// Reset forgets subject: its usage, strikes and ban.
	Reset(ctx context.Context, subject string) error
}

type model struct {
	now      func() time.Time
	mu       sync.Mutex
	subjects map[string]*subject
	resets   map[string]uint32
}

// NewModel returns a model without subjects that reads its time from now.
func NewModel(now func() time.Time) Model {
	return &model{now: now, subjects: map[string]*subject{}, resets: map[string]uint32{}}
}

type subject struct {
	windows map[time.Duration]*usage     // by kind; see engine.Plan.Kind
	returns map[time.Duration][]giveback // to smooth quotas
	record
}

type usage struct {
	used  int64
	end   time.Time
	begun bool     // something was charged, whether or not it was given back
	full  *big.Int // of a smooth quota, which has nothing else; see model_smooth.go
}

func (m *model) subject(name string) (*subject, time.Time) {
	now := m.now()
	s := m.subjects[name]
	if s == nil {
		s = &subject{windows: map[time.Duration]*usage{}, returns: map[time.Duration][]giveback{}}
		m.subjects[name] = s
	}
	return s, now
}

func (m *model) Take(_ context.Context, name string, plan *ratelimit.Plan, cost int64) (ratelimit.Decision, error) {
	if d, err := engine.Decide(name, plan, cost); err != nil || d.Outcome != 0 {
		return d, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.take(name, plan, cost), nil
}

// take is Take for a valid call, under the lock.
func (m *model) take(name string, plan *ratelimit.Plan, cost int64) ratelimit.Decision {
	s, now := m.subject(name)
	s.record = s.record.at(now)
	if s.length > 0 {
		s.until = s.banEnds(now) // cut for good if the clock stepped back
	}
	s.expire(now)
	s.open(now, plan)
	d, fits := s.preview(now, plan, cost)
	switch {
	case d.Outcome == ratelimit.Banned:
	case fits:
		for _, w := range s.windows {
			w.used, w.begun = min(w.used+cost, fixedwindow.MaxUnits), true
		}
		for _, q := range plan.Quotas() {
			if q.Burst() > 0 {
				s.charge(s.bucket(now, q), cost)
			}
		}
		s.strikes, s.length = 0, 0
		d, _ = s.preview(now, plan, cost)
		d.Outcome, d.Receipt.Others = ratelimit.Allowed, s.others(plan)
	default:
		struck, banned := s.strike(now, plan, d)
		if banned {
			d, _ = s.preview(now, plan, cost)
		} else {
			d.StrikesLeft = s.strikesLeft(now, plan)
		}
		d.Struck = struck
	}
	engine.Complete(&d)
	return d
}

func (m *model) Peek(_ context.Context, name string, plan *ratelimit.Plan) (ratelimit.Decision, error) {
	if d, err := engine.Decide(name, plan, 1); err != nil || d.Outcome != 0 {
		return d, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.peek(name, plan, 1), nil
}

// peek is Peek for a valid call of any cost, under the lock.
func (m *model) peek(name string, plan *ratelimit.Plan, cost int64) ratelimit.Decision {
	s, now := m.subject(name)
	copied := &subject{windows: map[time.Duration]*usage{}, record: s.record.at(now)}
	for length, w := range s.windows {
		c := *w
		copied.windows[length] = &c
	}
	copied.expire(now)
	copied.open(now, plan)
	d, _ := copied.preview(now, plan, cost)
	engine.Complete(&d)
	return d
}

// expire drops the windows that have ended, and those that nothing was charged to, and the
// buckets that are full. A window in the future is moved back to the latest end that it may
// have.
func (s *subject) expire(now time.Time) {
	for length, w := range s.windows {
		if w.full != nil {
			if w.full.Cmp(fractions(now)) <= 0 {
				delete(s.windows, length)
			}
			continue
		}
		if latest := latestEnd(now, length); w.end.After(latest) {
			w.end = latest
		}
		if !w.end.After(now) || !w.begun {
			delete(s.windows, length)
		}
	}
}

// open opens the missing windows of the plan.
func (s *subject) open(now time.Time, plan *ratelimit.Plan) {
	for i, q := range plan.Quotas() {
		kind := engine.Of(plan).Kind(i)
		if s.windows[kind] == nil {
			w := &usage{end: endOf(now, plan, i)}
			if q.Burst() > 0 {
				w = &usage{full: new(big.Int)}
			}
			s.insert(plan, kind, w)
		}
		if q.Burst() > 0 {
			s.charge(s.bucket(now, q), 0) // cut to what the subject can owe under this plan
		}
	}
}

// insert opens a window. If there are too many, it drops one that is not the plan's.
func (s *subject) insert(plan *ratelimit.Plan, kind time.Duration, w *usage) *usage {
	if len(s.windows) == maxWindows {
		s.dropOther(plan)
	}
	s.windows[kind] = w
	return w
}

// others returns the windows that are not the plan's, and count what it is charged.
func (s *subject) others(plan *ratelimit.Plan) (others [maxWindows - 1]fixedwindow.Window) {
	n := 0
	for _, kind := range slices.Sorted(maps.Keys(s.windows)) {
		if kind > 0 && !slices.ContainsFunc(plan.Quotas(), func(q ratelimit.Quota) bool { return q.Burst() == 0 && q.Window == kind }) {
			others[n] = fixedwindow.Window{Length: uint32(kind / time.Second), End: uint32(s.windows[kind].end.Unix())}
			n++
		}
	}
	return others
}

// dropOther drops a window that is not the plan's: the one that ends first and, of two
// that end together, the shorter one, and a smooth quota last.
func (s *subject) dropOther(plan *ratelimit.Plan) {
	var drop time.Duration
	var first int64
	for _, kind := range slices.SortedFunc(maps.Keys(s.windows), byKind) {
		ours := false
		for i := range engine.Of(plan).Len() {
			ours = ours || engine.Of(plan).Kind(i) == kind
		}
		if end, _ := s.windows[kind].ends(); !ours && (drop == 0 || end < first) {
			drop, first = kind, end
		}
	}
	delete(s.windows, drop)
}

// preview returns the decision on a request of the given cost before it is charged.
func (s *subject) preview(now time.Time, plan *ratelimit.Plan, cost int64) (d ratelimit.Decision, fits bool) {
	d = ratelimit.Decision{Outcome: ratelimit.Allowed, Plan: plan, Cost: cost, Time: now.UnixNano()}
	fits = true
	for i, q := range plan.Quotas() {
		w := s.windows[engine.Of(plan).Kind(i)]
		left := max(engine.Of(plan).Limit(i)-w.used, 0)
		if q.Burst() > 0 {
			b := s.bucket(now, q)
			left, w = b.left(), &usage{full: b.full}
		}
		d.States[i].Remaining = left
		d.States[i].Reset, d.Receipt.Rounded[i] = w.ends()
		fits = fits && left >= cost
	}
	if !fits {
		d.Outcome = ratelimit.Limited
	}
	if ends := s.banEnds(now); ends.After(now) {
		d.Outcome = ratelimit.Banned
		d.BanEnds = ends.Unix()
		d.Receipt.BanReason = new(s.reason)
	}
	d.StrikesLeft = s.strikesLeft(now, plan)
	if d.Outcome == ratelimit.Banned && d.StrikesLeft > 0 {
		d.StrikesLeft = 0
	}
	return d, fits
}

// endOf returns the end of the window of the i-th quota that t is in.
func endOf(t time.Time, plan *ratelimit.Plan, i int) time.Time {
	q := engine.Of(plan).Quota(i)
	if fixedwindow.IsCalendar(q.Window) {
		return time.Unix(engine.Of(plan).WindowEnd(i, nanoseconds(t)), 0)
	}
	return fixedEnd(t, q.Window)
}

// fixedEnd returns the end of the window of the given length that t is in. Windows are
// counted from 1 January 1970.
func fixedEnd(t time.Time, length time.Duration) time.Time {
	seconds := int64(length / time.Second)
	windows := t.Unix() / seconds // that have ended
	return time.Unix((windows+1)*seconds, 0)
}

// startOf returns the start of the window of the i-th quota that ends at a time.
func startOf(end time.Time, plan *ratelimit.Plan, i int) time.Time {
	return time.Unix(engine.Of(plan).WindowStart(i, end.Unix()), 0)
}

// latestEnd returns the latest end that a window of the given length may have: the end of the
// one after the window that now is in. Calendar windows may end two lengths from now.
func latestEnd(now time.Time, length time.Duration) time.Time {
	if fixedwindow.IsCalendar(length) {
		return time.Unix(now.Unix(), 0).Add(2 * length)
	}
	return fixedEnd(now, length).Add(length)
}

// nanoseconds returns t in Unix nanoseconds, and for a time that does not fit the nearest
// one from 1970 to 2106.
func nanoseconds(t time.Time) int64 {
	return min(max(t.Unix(), 0), 1<<32-1)*int64(time.Second) + int64(t.Nanosecond())
}

func roundUp(t time.Time) time.Time { return t.Add(time.Second - 1).Truncate(time.Second) }

func earlierOf(a, b time.Time) time.Time { return slices.MinFunc([]time.Time{a, b}, time.Time.Compare) }

func laterOf(a, b time.Time) time.Time { return slices.MaxFunc([]time.Time{a, b}, time.Time.Compare) }
