package memory

import (
	"fmt"
	"math/bits"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A shape is what is known of the windows that an account counts, shortest first,
// beside their use and end: their lengths, and the smallest limit that each was
// held against, rounded down by roundLimit. Slots hold its number.
type shape struct {
	n       int
	lengths [maxWindows]time.Duration
	limits  [maxWindows]int64
}

// roundLimit rounds a limit down by less than an eighth, so that plans with
// similar limits have one shape.
func roundLimit(limit int64) int64 {
	shift := max(bits.Len64(uint64(limit))-4, 0)
	return limit >> shift << shift
}

// heavy reports whether what was used is at least half of a limit.
func heavy(used, limit int64) bool { return used*2 >= limit }

// A cell is a shape that is read without a lock. It may be replaced once no slot
// has its number any more; a reader that still looks at it finds that the meter
// has changed as well.
type cell struct {
	n       atomic.Int64
	windows [maxWindows]struct{ length, limit atomic.Int64 }
}

func (c *cell) len() int                   { return int(c.n.Load()) }
func (c *cell) length(i int) time.Duration { return time.Duration(c.windows[i].length.Load()) }
func (c *cell) limit(i int) int64          { return c.windows[i].limit.Load() }

func (c *cell) set(s *shape) {
	c.n.Store(int64(s.n))
	for i := range c.windows {
		c.windows[i].length.Store(int64(s.lengths[i]))
		c.windows[i].limit.Store(s.limits[i])
	}
}

func (c *cell) shape() (s shape) {
	s.n = c.len()
	for i := range s.n {
		s.lengths[i], s.limits[i] = c.length(i), c.limit(i)
	}
	return s
}

// shapes numbers the shapes of the accounts that an engine holds. The numbers of
// shapes that no account has any more are given to others.
type shapes struct {
	cells atomic.Pointer[[]cell]

	mu      sync.Mutex
	numbers map[shape]int
	users   []int // by number: segments with accounts of that shape
	hand    int   // where the search for a free number goes on
}

// noCell stands for the shape of a slot that holds no account, or that is being
// changed.
var noCell cell

func (x *shapes) init() {
	x.numbers = map[shape]int{}
	x.cells.Store(new([]cell))
}

// get returns the shape with the given number.
func (x *shapes) get(number int) *cell {
	if cells := *x.cells.Load(); number < len(cells) {
		return &cells[number]
	}
	return &noCell
}

// limitShapes is how many shapes may differ in their limits. The numbers beyond
// are for the shapes of those that find none of these.
const limitShapes = maxShapes - 1024

// acquire returns the number of a shape, for one more segment. If the shape has
// none, it gets one below the bound.
func (x *shapes) acquire(s shape, bound int) (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	number, found := x.numbers[s]
	if !found {
		if number = x.free(bound); number < 0 {
			return 0, errShapes
		}
		x.numbers[s] = number
		x.get(number).set(&s)
	}
	x.users[number]++
	return number, nil
}

var errShapes = fmt.Errorf("%w: subjects have too many combinations of windows", ratelimit.ErrUnavailable)

// release gives a number back for one segment.
func (x *shapes) release(number int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.users[number]--
}

// free returns a number below the bound that no segment uses, or -1.
func (x *shapes) free(bound int) int {
	if n := len(x.users); n < bound {
		x.users = append(x.users, 0)
		if cells := *x.cells.Load(); n == len(cells) {
			grown := make([]cell, min(max(2*n, 8), maxShapes))
			for i := range cells {
				s := cells[i].shape()
				grown[i].set(&s)
			}
			x.cells.Store(&grown)
		}
		return n
	}
	for range bound {
		if x.hand++; x.hand >= bound {
			x.hand = 0
		}
		if x.users[x.hand] == 0 {
			delete(x.numbers, x.get(x.hand).shape())
			return x.hand
		}
	}
	return -1
}

// number returns the number of a shape for one more account of the segment.
func (s *segment) number(x *shapes, sh *shape) (int, error) {
	// The shapes that come first are those of most accounts. One that this
	// segment uses cannot be replaced meanwhile.
	const first = 8
	cells := *x.cells.Load()
	for i := range cells[:min(len(cells), first)] {
		if cells[i].len() == sh.n && s.shapes[i] > 0 && cells[i].shape() == *sh {
			s.shapes[i]++
			return i, nil
		}
	}
	number, err := x.acquire(*sh, limitShapes)
	if err != nil {
		// To hold an account that need not be held is better than to refuse it.
		for i := range sh.n {
			sh.limits[i] = 1
		}
		if number, err = x.acquire(*sh, maxShapes); err != nil {
			return 0, err
		}
	}
	if s.shapes[number]++; s.shapes[number] > 1 {
		x.release(number)
	}
	return number, nil
}

// unnumber takes back what number returned for one account.
func (s *segment) unnumber(x *shapes, number int) {
	if s.shapes[number]--; s.shapes[number] == 0 {
		delete(s.shapes, number)
		x.release(number)
	}
}
