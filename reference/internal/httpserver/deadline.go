package httpserver

import (
	"errors"
	"math"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// A deadline is the deadline for reading from a connection, or for writing to it.
//
// net/http sets nine deadlines in each request, and hardly any is ever reached, but for
// each a timer of the runtime would be moved. A deadline moves the timer only if that
// would otherwise end a running call too late. If the timer ends a call too early, it is
// moved to the deadline then, and the call goes on. So a call ends at its deadline, and
// the timer of a busy connection is moved about once in the time between the two.
type deadline struct {
	arm   func(time.Time) error // sets the timer
	since time.Time             // deadlines are nanoseconds from then

	want    atomic.Int64 // the deadline
	running atomic.Int64 // calls that the timer must end

	mu    sync.Mutex   // held while the timer is set
	timer atomic.Int64 // when the timer ends calls; changed with mu held
}

// never is the deadline of a call that has none.
const never = math.MaxInt64

// init sets the function that sets the timer, which is not set yet.
func (d *deadline) init(now time.Time, arm func(time.Time) error) {
	d.arm, d.since = arm, now
	d.want.Store(never)
	d.timer.Store(never)
}

// set sets the deadline of running and later calls. The zero time is none.
func (d *deadline) set(t time.Time) error {
	want := int64(never)
	if !t.IsZero() {
		want = int64(t.Sub(d.since))
	}
	d.want.Store(want)
	if d.running.Load() == 0 {
		return nil // do will see it
	}
	return d.advance()
}

// do makes one call, which ends at the deadline. The call reports how many bytes it has
// read or written; do repeats it as long as the timer ends it too early.
func (d *deadline) do(p []byte, call func([]byte) (int, error)) (int, error) {
	d.running.Add(1)
	defer d.running.Add(-1)
	// net/http ends a running call with a time in 1970. The call has often not begun.
	if d.want.Load() < 0 {
		return 0, os.ErrDeadlineExceeded
	}
	if err := d.advance(); err != nil {
		return 0, err
	}
	n, err := call(p)
	for err != nil && errors.Is(err, os.ErrDeadlineExceeded) && d.postpone() {
		var more int
		more, err = call(p[n:])
		n += more
	}
	return n, err
}

// advance moves the timer to the deadline if that is earlier.
func (d *deadline) advance() error {
	if d.want.Load() >= d.timer.Load() {
		return nil
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if want := d.want.Load(); want < d.timer.Load() {
		return d.move(want)
	}
	return nil
}

// postpone moves the timer to the deadline, and returns false if that has passed.
func (d *deadline) postpone() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	for {
		want := d.want.Load()
		if want <= int64(time.Since(d.since)) || d.move(want) != nil {
			return false
		}
		// A deadline that was set meanwhile may be earlier. Until move, set saw the old
		// timer, which is earlier still, and left it alone.
		if d.want.Load() >= want {
			return true
		}
	}
}

// move is called with d.mu held.
func (d *deadline) move(to int64) error {
	d.timer.Store(to)
	if to == never {
		return d.arm(time.Time{})
	}
	return d.arm(d.since.Add(time.Duration(to)))
}
