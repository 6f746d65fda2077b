package redislimit

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// While a cluster moves a slot to another master, some of its keys are still here
// and some are there. A master refuses a command about keys of both kinds, or about
// one that exists and one that does not (TRYAGAIN), and has done nothing then.
// Commands about several subjects are sent again for one subject at a time, which
// always works. A request that would start a ban cannot have its index then: it is
// limited, and the ban is left to a later one. A ban, an unban, a reset and a charge
// wait until both keys are on one side.

// patience is how long a command about two keys waits for a slot at most.
const patience = 5 * time.Second

// The pauses after which such a command is sent again double from the first to the
// longest.
const (
	firstPause   = 2 * time.Millisecond
	longestPause = 50 * time.Millisecond
)

// moving reports whether err says that nothing was done because a slot moves. The
// client of a cluster follows MOVED and ASK a few times before it gives up.
func (l *Limiter) moving(err error) bool {
	return redis.HasErrorPrefix(err, "TRYAGAIN") ||
		l.lanes.cluster != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK"))
}

// split returns a command for each group of cmd.
func (cmd *command) split() []*command {
	cmds := make([]*command, len(cmd.groups))
	for i, g := range cmd.groups {
		cmds[i] = &command{groups: []*group{g}, eval: cmd.eval}
	}
	return cmds
}

// postpone sends a command of one group again after a pause. It gives up when no
// caller waits for the answer, or after patience, and ends the group with err.
func (l *Limiter) postpone(cmd *command, err error) {
	if cmd.begun.IsZero() {
		cmd.begun, cmd.pause = time.Now(), firstPause
	}
	time.Sleep(cmd.pause)
	if g := cmd.groups[0]; !g.awaited() || time.Since(cmd.begun) > patience {
		cmd.fail(err)
		return
	}
	l.dispatch([]*command{{groups: cmd.groups, begun: cmd.begun, pause: min(2*cmd.pause, longestPause)}})
}
