package memory

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
)

// A layout is what the accounts of many subjects have in common: the kinds of
// their windows, in order, and the smallest limit that each window was
// measured against, rounded down by roundLimit. A slot holds the number of its layout.
type layout struct {
	n      int
	wide   uint8 // bit i is set: the i-th window is wide; see slot
	kinds  [maxWindows]fixedwindow.Kind
	limits [maxWindows]int64
}

// roundLimit rounds a limit down by less than an eighth, so that plans with
// similar limits have one layout.
func roundLimit(limit int64) int64 {
	shift := max(bits.Len64(uint64(limit))-4, 0)
	return limit >> shift << shift
}

// window returns the i-th window, which it has, of a slot with the meter m and this
// layout, if it is neither of a smooth quota nor wide.
func (l *layout) window(i int, slot slot, m meter) window {
	w := slot.window(i)
	return window{l.kinds[i], l.limits[i], w.used(m.count()), w.end()}
}

// anyWindow is window for smooth quotas and wide windows too.
func (l *layout) anyWindow(i int, slot slot, m meter) window {
	w := l.window(i, slot, m)
	if w.isSmooth() {
		w.used = int64(slot.window(i).rounded())
	} else if second := l.secondWord(i); second > 0 && slot.has(second) {
		w.used += int64(slot.word(second))
	}
	return w
}

// isPlain reports whether there is neither a smooth quota nor a wide window: one word counts
// each window. Smooth quotas come first.
func (l *layout) isPlain() bool { return l.wide == 0 && !l.kinds[0].IsSmooth() }

// rebase lowers the counts in the words of a slot, which is frozen, by the count of its meter.
func (l *layout) rebase(slot slot, count uint32) {
	for i := range l.n {
		if w := slot.window(i); !l.kinds[i].IsSmooth() {
			slot.setWindow(i, newWindowWord(w.began()-count, w.end()))
		}
	}
}

// words returns how many words a slot has beside hash and meter.
func (l *layout) words() int { return l.n + bits.OnesCount8(l.wide) }

// secondWord returns which of these words is the second one of the i-th window; 0 if it is not
// wide.
func (l *layout) secondWord(i int) int {
	if l.wide>>i&1 == 0 {
		return 0
	}
	return l.n + bits.OnesCount8(l.wide&(1<<i-1))
}

// A sharedLayout never changes, but for its count. Another one may get its number once no
// account has it. A reader that still looks at it then finds that the meter has changed
// as well.
type sharedLayout struct {
	layout
	accounts atomic.Int64 // that have it; it is raised from 0 under the lock of layouts alone
}

// layouts numbers the layouts of the accounts of an engine. A number that no
// account has is free for another layout.
type layouts struct {
	shared atomic.Pointer[[]atomic.Pointer[sharedLayout]] // by number

	mu       sync.Mutex
	numbers  map[layout]int
	used     int // the numbers below are or were in use
	lastFree int // where the last search for a free number ended
}

// noLayout is the layout of a slot that holds no account, or that is being changed.
var noLayout sharedLayout

func (l *layouts) init() {
	l.numbers = map[layout]int{}
	l.shared.Store(new([]atomic.Pointer[sharedLayout]))
}

// get returns the layout with the given number.
func (l *layouts) get(number int) *sharedLayout {
	if shared := *l.shared.Load(); number < len(shared) {
		return shared[number].Load()
	}
	return &noLayout
}

// limitLayouts is how many layouts, 15,357, may differ in their limits. The 1,024
// numbers above are for layouts that find none of these free: add then takes 1 for
// each limit, so that there is one layout for each combination of windows. A subject
// with one combination more is refused.
const limitLayouts = maxLayouts - 1024

var errLayouts = fmt.Errorf("memory: %w: subjects have too many combinations of windows: use plans with fewer different windows", ratelimit.ErrUnavailable)

// add returns the number of a layout for one more account. If no number is free, it takes 1
// for each limit, so that the account has one: that is better than to refuse it.
func (l *layouts) add(want layout) (int, error) {
	for i := range min(len(*l.shared.Load()), 8) { // most accounts have one of the first
		s := l.get(i)
		for s != nil && s.layout == want {
			n := s.accounts.Load()
			if n == 0 {
				break // it may get another number
			}
			if s.accounts.CompareAndSwap(n, n+1) {
				return i, nil
			}
		}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	number := l.acquire(want, limitLayouts)
	if number < 0 {
		for i := range want.n {
			want.limits[i] = 1
		}
		if number = l.acquire(want, maxLayouts); number < 0 {
			return 0, errLayouts
		}
	}
	l.get(number).accounts.Add(1)
	return number, nil
}

// acquire returns the number of a layout. One without a number gets one below the bound,
// or -1.
func (l *layouts) acquire(want layout, bound int) int {
	number, found := l.numbers[want]
	if !found {
		if number = l.free(bound); number < 0 {
			return -1
		}
		l.numbers[want] = number
		(*l.shared.Load())[number].Store(&sharedLayout{layout: want})
	}
	return number
}

// free returns a number below the bound that no account has, or -1.
func (l *layouts) free(bound int) int {
	if n := l.used; n < bound {
		l.used++
		if shared := *l.shared.Load(); n == len(shared) {
			grown := make([]atomic.Pointer[sharedLayout], min(max(2*n, 8), maxLayouts))
			for i := range shared {
				grown[i].Store(shared[i].Load())
			}
			l.shared.Store(&grown)
		}
		return n
	}
	for range bound {
		if l.lastFree++; l.lastFree >= bound {
			l.lastFree = 0
		}
		if s := l.get(l.lastFree); s.accounts.Load() == 0 {
			delete(l.numbers, s.layout)
			return l.lastFree
		}
	}
	return -1
}

// remove takes back what add did for one account.
func (l *layouts) remove(number int) { l.get(number).accounts.Add(-1) }
