package redislimit

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// A command is one call of the script: the same operation on some subjects. All of
// them differ, because the script reads all the keys first.
type command struct {
	*redis.StringCmd
	groups []*group
	eval   bool // send the script itself
}

// NoRetry keeps the client from sending a command a second time if the outcome of
// the first is unknown: a charge must not be made twice because a reply was lost.
func (*command) NoRetry() bool { return true }

// maxSubjects is how many subjects a command has at most. It bounds how long the
// script keeps the server from everything else, at about two microseconds a subject.
const maxSubjects = 64

// hasRoomFor reports whether the command can take the group too.
func (cmd *command) hasRoomFor(g *group) bool {
	for _, other := range cmd.groups {
		if other.partition == g.partition && other.subject == g.subject {
			return false
		}
	}
	return len(cmd.groups) < maxSubjects
}

// pack makes commands of groups.
func (s *sender) pack(groups []*group) []*command {
	if len(groups) == 1 {
		return []*command{{groups: groups}}
	}
	// A class is what groups of one command have in common.
	type class struct {
		operation     // without the subject
		partition int // -1: any
	}
	oneSlot := s.oneSlot.Load()
	var cmds []*command
	var open map[class]*command
	var last class // mostly that of the next group too
	var cmd *command
	var together *command
	for _, g := range groups {
		if g.code == opTakeAll && g.index == indexNotNeeded {
			if together == nil || !together.hasRoomForTakes(g) {
				together = new(command)
				cmds = append(cmds, together)
			}
			together.groups = append(together.groups, g)
			continue
		}
		if g.index != indexNotNeeded || g.change != nil {
			cmds = append(cmds, &command{groups: []*group{g}})
			continue
		}
		c := class{g.operation, -1}
		c.subject = ""
		if oneSlot {
			c.partition = g.partition
		}
		if cmd == nil || c != last {
			if open == nil {
				open = make(map[class]*command)
			}
			if cmd != nil {
				open[last] = cmd
			}
			last, cmd = c, open[c]
		}
		if cmd == nil || !cmd.hasRoomFor(g) {
			cmd = &command{groups: make([]*group, 0, min(len(groups), maxSubjects))}
			cmds = append(cmds, cmd)
		}
		cmd.groups = append(cmd.groups, g)
	}
	return cmds
}

// A call is one caller's part in a group.
type call struct {
	next  *call         // in the group, in the order of arrival
	ready chan struct{} // has room for one: the answer is there
	place int32         // in the group when it is sent, from 0
	state callState
}

func newCall() *call { return &call{ready: make(chan struct{}, 1)} }

// A callState says where a call stands. It changes by moves from one state to
// another, of which one of two concurrent ones succeeds:
//
//	queued ──> sent ──> answered
//	   │         ├────> expired     the deadline of the caller passed
//	   │         └────> cancelled   the caller's context was cancelled
//	   └─────> withdrawn            the context ended before the call was sent
type callState struct{ atomic.Uint32 }

const (
	queued = iota
	withdrawn
	sent
	answered
	expired
	cancelled
)

func (s *callState) move(from, to uint32) bool { return s.CompareAndSwap(from, to) }

// leave ends the wait of a caller when its context ended with err. It returns false if
// the answer is there by now. A call that was not sent is withdrawn. One that expired
// is refunded, and one that the caller cancelled is not: requests abandoned by the
// client stay charged.
func (c *call) leave(err error) bool {
	if c.state.move(queued, withdrawn) {
		return true
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return c.state.move(sent, expired)
	}
	return c.state.move(sent, cancelled)
}
