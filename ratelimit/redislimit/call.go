package redislimit

import (
	"context"
	"errors"
	"sync/atomic"
)

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
