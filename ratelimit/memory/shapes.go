package memory

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A shape is the lengths of the windows that an account counts, shortest first.
// Slots hold its number. An engine meets few: one for each combination of
// windows in its plans.
type shape struct {
	n       int
	lengths [maxWindows]time.Duration
}

// matches reports whether the shape is exactly the windows of plan.
func (s *shape) matches(plan *ratelimit.Plan) bool {
	if s.n != plan.Len() {
		return false
	}
	for i := range s.n {
		if s.lengths[i] != plan.Quota(i).Window {
			return false
		}
	}
	return true
}

// shapes numbers the shapes that an engine has met. It only grows. Numbers are
// looked up without a lock.
type shapes struct {
	mu   sync.Mutex
	list atomic.Pointer[[]shape]
}

// noShape stands for the shape of a slot that holds no account, or that
// somebody is changing.
var noShape shape

// get returns the shape with the given number.
func (x *shapes) get(number int) *shape {
	if list := *x.list.Load(); number < len(list) {
		return &list[number]
	}
	return &noShape
}

// number returns the number of a shape, which it gives to a new one.
func (x *shapes) number(s shape) (int, error) {
	if i := slices.Index(*x.list.Load(), s); i >= 0 {
		return i, nil
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	list := *x.list.Load()
	if i := slices.Index(list, s); i >= 0 {
		return i, nil
	}
	if len(list) == maxShapes {
		return 0, fmt.Errorf("%w: more than %d combinations of windows", ratelimit.ErrUnavailable, maxShapes)
	}
	list = append(slices.Clip(slices.Clone(list)), s)
	x.list.Store(&list)
	return len(list) - 1, nil
}
