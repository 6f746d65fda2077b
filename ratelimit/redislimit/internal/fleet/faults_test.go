//go:build unix

package fleet

import (
	"math/rand/v2"
	"syscall"
	"time"
)

// A fault is what can happen to a fleet.
type fault int

const (
	nothing fault = iota
	clocks        // are wrong, which they are from the start
	killed        // kill -9 of a member, which is started again
	stopped       // SIGSTOP of a member before windows end, until they have ended
	outage        // SIGSTOP of Redis likewise, and sometimes kill -9
	faults
)

var faultNames = [faults]string{"nothing", "clocks wrong by a tenth", "kill -9", "SIGSTOP", "Redis away"}

const (
	window = 2 * time.Second        // of most subjects
	before = 900 * time.Millisecond // windows end; in the meantime requests to Redis time out
	lasts  = 1200 * time.Millisecond
)

// happen makes a fault happen, to a member if it is one of members.
func (f *fleet) happen(k fault, member int) {
	switch k {
	case nothing, clocks:
		time.Sleep(lasts)
		return
	case killed:
		time.Sleep(window/2 + time.Duration(rand.Int64N(int64(window))))
	case stopped, outage:
		time.Sleep(window - (time.Duration(time.Now().UnixNano())+before)%window)
	}
	switch k {
	case killed:
		f.members[member].kill()
		f.start(member)
	case stopped:
		must(f.T, f.members[member].Process.Signal(syscall.SIGSTOP))
		time.Sleep(lasts)
		must(f.T, f.members[member].Process.Signal(syscall.SIGCONT))
	case outage:
		f.server.Stop()
		time.Sleep(lasts)
		f.server.Cont()
		if rand.IntN(2) == 0 {
			f.server.Restart()
		}
	}
}
