package redislimit

import (
	"time"

	"github.com/redis/go-redis/v9"
)

// While a cluster moves a slot to another master, each of the two has some of its
// keys. A master refuses a command about keys of both, or about one that exists and
// one that does not (TRYAGAIN), and has done nothing then. Commands about several
// subjects are sent again for one subject at a time, which always works. A take that
// would start a ban cannot have the index then: the request is limited, and a later
// one starts the ban. Nor can a peek have the holds then, so that expired ones still count.
// What else needs a second key waits until one master has both: a ban, an unban, a reset,
// a lease, a held charge, an adjustment with an id, and a refund under a smooth quota.

// slotMoves reports whether err says that nothing was done because a slot moves. The
// client of a cluster follows MOVED and ASK a few times before it gives up.
func (s *sender) slotMoves(err error) bool {
	return redis.HasErrorPrefix(err, "TRYAGAIN") ||
		s.cluster != nil && (redis.HasErrorPrefix(err, "MOVED") || redis.HasErrorPrefix(err, "ASK"))
}

// split returns a command for each group of cmd.
func (cmd *command) split() []*command {
	cmds := make([]*command, len(cmd.groups))
	for i, g := range cmd.groups {
		cmds[i] = &command{groups: []*group{g}, eval: cmd.eval}
	}
	return cmds
}

// maxSlotWait is how long a group waits for a slot at most. The pauses after which it
// is sent again double from the first to the longest.
const (
	maxSlotWait  = 5 * time.Second
	firstPause   = 2 * time.Millisecond
	longestPause = 50 * time.Millisecond
)

// awaitSlot sends a group again after a pause, until its slot has moved. It gives up, with the
// last error, when no caller waits for the answer, or after maxSlotWait.
func (s *sender) awaitSlot(g *group, err error) {
	if g.pause == 0 {
		g.giveUp = time.Now().Add(maxSlotWait)
	}
	g.pause = min(max(2*g.pause, firstPause), longestPause)
	time.Sleep(g.pause)
	if !g.awaited() || time.Now().After(g.giveUp) {
		g.fail(unavailable(err))
		return
	}
	_ = s.exchange([]*command{{groups: []*group{g}}}) // the group has the error
}
