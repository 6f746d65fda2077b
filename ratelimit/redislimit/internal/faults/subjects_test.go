//go:build unix

package faults

import (
	"fmt"
	"sync/atomic"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// How many requests a phase has at least. The fault lasts until there are as many
// as half of the limits of the embedded engine are used up with; without a circuit
// fewer are enough, since each of them may have to wait.
const (
	healthyRequests  = 1280
	faultRequests    = 4096
	waitingRequests  = 512
	recoveryRequests = 4096
)

// limited are the subjects that all callers share. Each has an eighth of the
// requests, so that the healthy phase uses 160 units of each.
var limited = []struct {
	name  string
	limit int64
}{
	{"used up", 64},
	{"more than half used", 240},
	{"less than half used", 480},
}

const shares = 8

// A subject is one that requests are counted for, and what the callers have seen of it.
type subject struct {
	name string
	plan *ratelimit.Plan

	admitted, denied, failed atomic.Int64
	refused                  atomic.Int64 // requests that Redis was asked for, and did not decide
	decided                  atomic.Int32 // the last phase in which Redis decided one

	before int64 // admitted before the fault
	lost   int64 // of what Redis had counted: what the fault makes it forget, at most
	away   bool  // its master decides nothing during the fault, while others do
}

// newSubjects returns the limited ones, and after them one for each caller, which
// has plenty.
func newSubjects() []*subject {
	var s []*subject
	for _, l := range limited {
		s = append(s, &subject{name: l.name, plan: lasting(l.limit)})
	}
	for i := range callers {
		s = append(s, &subject{name: fmt.Sprint("caller ", i), plan: lasting(1 << 20)})
	}
	return s
}

// choose returns the subject of the n-th request of a caller.
func choose(subjects []*subject, caller, n int) *subject {
	if i := n % shares; i < len(limited) {
		return subjects[i]
	}
	return subjects[len(limited)+caller]
}

// count returns what the subject's requests came to.
func (s *subject) count(counted int64) count {
	return count{
		subject: s.name, limit: s.limit(), before: s.before, lost: s.lost,
		admitted: s.admitted.Load(), denied: s.denied.Load(), failed: s.failed.Load(),
		counted: counted, spared: !s.away && s.refused.Load() == 0,
	}
}

func (s *subject) limit() int64 { return engine.Of(s.plan).Quota(0).Limit }

// lasting is a plan with a window that does not end during a test.
func lasting(limit int64) *ratelimit.Plan {
	return ratelimit.MustPlan("lasting", ratelimit.Penalty{}, ratelimit.Quota{Limit: limit, Window: fixedwindow.MaxLength})
}
