package memory

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A layout is what the accounts of many subjects have in common: the lengths of
// their windows, in order, and the smallest limit that each window was
// held against, rounded down by roundLimit. A slot holds the number of its layout.
type layout struct {
	n       int
	lengths [maxWindows]time.Duration
	limits  [maxWindows]int64
}

// roundLimit rounds a limit down by less than an eighth, so that plans with
// similar limits have one layout.
func roundLimit(limit int64) int64 {
	shift := max(bits.Len64(uint64(limit))-4, 0)
	return limit >> shift << shift
}

// A sharedLayout is a layout that is read without a lock. Another layout may
// replace it once no slot has its number. A reader that still looks at it then
// finds that the meter has changed as well.
type sharedLayout struct {
	n   atomic.Int64
	all [maxWindows]struct{ length, limit atomic.Int64 }
}

func (s *sharedLayout) len() int                   { return int(s.n.Load()) }
func (s *sharedLayout) length(i int) time.Duration { return time.Duration(s.all[i].length.Load()) }
func (s *sharedLayout) limit(i int) int64          { return s.all[i].limit.Load() }

// window returns the i-th window, which it has, of a slot with the meter m and this
// layout, if it is not of a smooth quota.
func (s *sharedLayout) window(i int, slot slot, m meter) window {
	w, all := slot.word(i), &s.all[i]
	return window{time.Duration(all.length.Load()), all.limit.Load(), w.used(m.count()), w.end()}
}

// anyWindow is window for smooth quotas too.
func (s *sharedLayout) anyWindow(i int, slot slot, m meter) window {
	w := s.window(i, slot, m)
	if w.isSmooth() {
		w.used = int64(slot.word(i).began())
	}
	return w
}

func (s *sharedLayout) store(l *layout) {
	s.n.Store(int64(l.n))
	for i := range s.all {
		s.all[i].length.Store(int64(l.lengths[i]))
		s.all[i].limit.Store(l.limits[i])
	}
}

func (s *sharedLayout) load() (l layout) {
	l.n = s.len()
	for i := range l.n {
		l.lengths[i], l.limits[i] = s.length(i), s.limit(i)
	}
	return l
}

// layouts numbers the layouts of the accounts of an engine. A number that no
// account has is free for another layout.
type layouts struct {
	shared atomic.Pointer[[]sharedLayout] // by number

	mu       sync.Mutex
	numbers  map[layout]int
	segments []int // by number: how many segments have accounts with that layout
	lastFree int   // where the last search for a free number ended
}

// noLayout is that of a slot that holds no account, or that is being changed.
var noLayout sharedLayout

func (l *layouts) init() {
	l.numbers = map[layout]int{}
	l.shared.Store(new([]sharedLayout))
}

// get returns the layout with the given number.
func (l *layouts) get(number int) *sharedLayout {
	if shared := *l.shared.Load(); number < len(shared) {
		return &shared[number]
	}
	return &noLayout
}

// limitLayouts is how many layouts, 15,357, may differ in their limits. The 1,024
// numbers above are for layouts that find none of these free: add then takes 1 for
// each limit, so that there is one layout for each combination of windows. A subject
// with one combination more is refused.
const limitLayouts = maxLayouts - 1024

var errLayouts = fmt.Errorf("%w: subjects have too many combinations of windows: use plans with fewer different windows", ratelimit.ErrUnavailable)

// acquire returns the number of a layout, for one more segment. A layout without
// a number gets one below the bound.
func (l *layouts) acquire(want layout, bound int) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	number, found := l.numbers[want]
	if !found {
		if number = l.free(bound); number < 0 {
			return 0, errLayouts
		}
		l.numbers[want] = number
		l.get(number).store(&want)
	}
	l.segments[number]++
	return number, nil
}

// release gives a number back for one segment.
func (l *layouts) release(number int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.segments[number]--
}

// free returns a number below the bound that no segment uses, or -1.
func (l *layouts) free(bound int) int {
	if n := len(l.segments); n < bound {
		l.segments = append(l.segments, 0)
		if shared := *l.shared.Load(); n == len(shared) {
			grown := make([]sharedLayout, max(2*n, 8))
			for i := range shared {
				old := shared[i].load()
				grown[i].store(&old)
			}
			l.shared.Store(&grown)
		}
		return n
	}
	for range bound {
		if l.lastFree++; l.lastFree >= bound {
			l.lastFree = 0
		}
		if l.segments[l.lastFree] == 0 {
			delete(l.numbers, l.get(l.lastFree).load())
			return l.lastFree
		}
	}
	return -1
}

// segmentLayouts are the layouts that the accounts of one segment have. The lock
// of the segment guards them.
type segmentLayouts struct {
	*layouts
	accounts map[int]int // by the number of their layout
}

// add returns the number of the layout for one more account. If no number is free,
// it takes 1 for each limit, so that the account is held: that is better than to
// refuse it.
func (s *segmentLayouts) add(a *account) (int, error) {
	// The layouts that come first are those of most accounts. One that this
	// segment uses cannot be replaced meanwhile.
	const first = 8
	shared := *s.shared.Load()
	for i := range shared[:min(len(shared), first)] {
		if s.accounts[i] > 0 && a.has(&shared[i]) {
			s.accounts[i]++
			return i, nil
		}
	}
	want := a.layout()
	number, err := s.acquire(want, limitLayouts)
	if err != nil {
		for i := range want.n {
			want.limits[i] = 1
		}
		if number, err = s.acquire(want, maxLayouts); err != nil {
			return 0, err
		}
	}
	if s.accounts[number]++; s.accounts[number] > 1 {
		s.release(number)
	}
	return number, nil
}

// remove takes back what add did for one account.
func (s *segmentLayouts) remove(number int) {
	if s.accounts[number]--; s.accounts[number] == 0 {
		delete(s.accounts, number)
		s.release(number)
	}
}
