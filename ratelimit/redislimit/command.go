package redislimit

import (
	"context"
	_ "embed"
	"errors"
	"sync/atomic"

	"github.com/redis/go-redis/v9"
)

// The script is these files, in the order in which Redis runs them.
var (
	//go:embed format.lua
	formatText string
	//go:embed fast.lua
	fastText string
	//go:embed lease.lua
	leaseText string
	//go:embed rules.lua
	rulesText string
	//go:embed operations.lua
	operationsText string

	script       = formatText + fastText + leaseText + rulesText + operationsText
	scriptDigest = redis.NewScript(script).Hash() // the name by which EVALSHA knows it
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

// call returns the front of the arguments.
func (cmd *command) call(args []any) []any {
	if cmd.eval {
		return append(args, "eval", script)
	}
	return append(args, "evalsha", scriptDigest)
}

// maxSubjects is how many subjects a command has at most. It bounds how long the
// script keeps the server from everything else, at about two microseconds a subject.
const maxSubjects = 64

// hasRoomFor reports whether the command can take the group too.
func (cmd *command) hasRoomFor(g *group) bool {
	if g.code == opTakeAll {
		return cmd.hasRoomForTakes(g)
	}
	for _, other := range cmd.groups {
		if other.partition == g.partition && other.subject == g.subject {
			return false
		}
	}
	return len(cmd.groups) < maxSubjects
}

// pack makes commands of groups.
func (s *sender) pack(groups []*group) (cmds []*command) {
	if len(groups) == 1 {
		return []*command{{groups: groups}}
	}
	oneSlot := s.oneSlot.Load()
	open := map[class]*command{} // that groups may still join
	var c class
	var cmd *command // of the class; nil: none
	for _, g := range groups {
		if g.index != indexNotNeeded || g.change != nil || g.holder != nil {
			cmds = append(cmds, &command{groups: []*group{g}})
			continue
		}
		if next := classOf(g, oneSlot); cmd == nil || next != c { // mostly the same, which needs no map
			c, cmd = next, open[next]
		}
		if cmd == nil || !cmd.hasRoomFor(g) {
			cmd = &command{groups: make([]*group, 0, min(len(groups), maxSubjects))}
			cmds, open[c] = append(cmds, cmd), cmd
		}
		cmd.groups = append(cmd.groups, g)
	}
	return cmds
}

// A class is what groups of one command have in common.
type class struct {
	operation     // without the subject
	partition int // -1: any
}

func classOf(g *group, oneSlot bool) class {
	if g.code == opTakeAll {
		return class{operation{code: opTakeAll}, -1}
	}
	c := class{g.operation, -1}
	c.subject = ""
	if oneSlot {
		c.partition = g.partition
	}
	return c
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
