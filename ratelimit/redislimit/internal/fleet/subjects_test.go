//go:build unix

package fleet

import (
	"math"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
)

// A subject is one that all members get requests for.
type subject struct {
	limit   int64
	window  int64 // seconds
	traffic traffic
	cost    int64     // of each request
	demand  []float64 // of one window after the other, again and again, in limits
	longer  int64     // the limit of the longer windows
}

// longer is how many windows the window of the second quota is as long as.
const longer = 5

// subjects are the same in all processes, which know them by their index.
var subjects = func() (all []subject) {
	for _, s := range []subject{{limit: 10, window: 2}, {limit: 60, window: 2}, {limit: 1000, window: 2}, {limit: 100_000, window: 5}} {
		for t := range traffics {
			s.traffic, s.cost = t, 1
			if t == skewed {
				s.cost = 3
			}
			s.demand, s.longer = []float64{0.95}, longer*s.limit
			all = append(all, s)
			// Shares are held when the first of these windows ends, and in the second one all
			// units are used. The longer quota is used up in the last of its windows.
			s.demand, s.longer = []float64{0.5, 3, 0.95, 1.5}, (longer-1)*s.limit
			all = append(all, s)
		}
	}
	return all
}()

func (s *subject) plan() *ratelimit.Plan {
	second := time.Duration(s.window) * time.Second
	return ratelimit.MustPlan("fleet", ratelimit.Penalty{},
		ratelimit.Quota{Limit: s.limit, Window: second}, ratelimit.Quota{Limit: s.longer, Window: longer * second})
}

// length is that of a window in nanoseconds.
func (s *subject) length() int64 { return s.window * int64(time.Second) }

// inWindow is the demand of a window.
func (s *subject) inWindow(w int64) float64 { return s.demand[w%int64(len(s.demand))] }

// A traffic is how requests come to the members.
type traffic int

const (
	steady   traffic = iota // one after the other gets one
	rotating                // one gets all, and after a third of a window the next one
	skewed                  // each gets half of what those before it did not get
	traffics
)

func (t traffic) String() string { return [...]string{"steady", "rotating", "skewed"}[t] }

// due returns how many requests for a subject have come to a member of a fleet since a
// window began. The sum over all members is the demand.
func (s *subject) due(now int64, member, members int) int64 {
	w, x := now/s.length(), float64(now%s.length())/float64(s.length())
	until := func(x float64) int64 { return int64(math.Floor(s.inWindow(w) * float64(s.limit/s.cost) * x)) }
	all := until(x)
	switch s.traffic {
	case steady:
		return (all + int64(members-1-member)) / int64(members)
	case skewed:
		if member == members-1 {
			return all >> member
		}
		return all>>member - all>>(member+1)
	}
	due := int64(0)
	for third := range int64(3) {
		if begin := float64(third) / 3; x > begin && (3*w+third)%int64(members) == int64(member) {
			due += until(min(x, begin+1./3)) - until(begin)
		}
	}
	return due
}
