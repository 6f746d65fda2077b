package lease

import (
	"fmt"
	"testing"
)

// What follows is the protocol of shares with everything left out that does not matter to its
// promise, small enough that every state of it can be visited: one process with shares, and any
// number that ask for each request; one subject, two windows of two ticks, a limit of two
// units, one reset. Messages may be delayed or lost, and answers too. The process may be
// killed, its clock may be a tenth slow, and while it is paused everything else goes on: steps
// come in any order.
const (
	modelLimit  = 2
	modelWindow = 2 // ticks
	modelTicks  = 4
	perTick     = 11 // of a right clock; a slow one advances by 10
)

// A modelState has all that is known. It is comparable.
type modelState struct {
	tick     int8
	count    int8 // units that the engine has counted in the window of the tick
	resets   int8 // so far
	admitted int8 // requests in the window
	allowed  int8 // that may be: the limit, and once more for each reset in the window

	// The process with shares. A call, an answer, and a return are on their way, or none. The
	// call was sent at a time of the process's clock.
	clock  int16
	share  modelShare
	calls  bool
	sentAt int16
	answer modelShare
	back   modelShare
}

// A modelShare is units of a window, and how long it is valid by the process's clock.
type modelShare struct {
	units, window, resets int8
	ends                  int16
}

// rules are what the protocol promises to do; each may be broken.
type rules struct {
	neverEnds    bool // a share has no end
	fromAnswer   bool // its end is counted from when the answer came
	noAllowance  bool // for clocks that drift
	returnTwice  bool // what may have been given back is given back again
	ignoreResets bool // a return from before a reset counts
	anyWindow    bool // a return counts in whichever window is open
}

func (s modelState) window() int8 { return s.tick / modelWindow }

// next calls visit with each state that can follow.
func (s modelState) next(r rules, visit func(modelState, string)) {
	change := func(possible bool, what string, f func(n *modelState)) {
		if n := s; possible {
			f(&n)
			visit(n, what)
		}
	}
	for _, advances := range []int16{perTick - 1, perTick} {
		change(s.tick < modelTicks-1, fmt.Sprintf("tick %d", s.tick+1), func(n *modelState) {
			n.tick, n.clock = n.tick+1, n.clock+advances
			if n.window() != s.window() {
				n.count, n.admitted, n.allowed = 0, 0, modelLimit
			}
		})
	}
	change(s.resets == 0, "reset", func(n *modelState) {
		n.count, n.resets, n.admitted, n.allowed = 0, 1, 0, modelLimit+n.share.units+n.answer.units
	})
	change(s.count < modelLimit, "another process admits", func(n *modelState) { n.count, n.admitted = n.count+1, n.admitted+1 })
	s.takeShare(r, change)

	change(s.share.units > 0 && (r.neverEnds || s.clock < s.share.ends), "admit", func(n *modelState) {
		n.admitted, n.share.units = n.admitted+1, n.share.units-1
	})
	change(s.share.units > 0 && s.back.units == 0, "give back", func(n *modelState) { n.back, n.share = n.share, modelShare{} })
	change(s.back.units > 0, "lose the return", func(n *modelState) { n.back = modelShare{} })
	change(s.back.units > 0, "take back", func(n *modelState) {
		if (r.anyWindow || n.back.window == n.window()) && (r.ignoreResets || n.back.resets == n.resets) {
			n.count = max(n.count-n.back.units, 0)
		}
		if !r.returnTwice {
			n.back = modelShare{}
		}
	})
	change(s.calls || s.share.units+s.answer.units+s.back.units > 0, "die", func(n *modelState) {
		n.share, n.calls, n.sentAt, n.answer, n.back = modelShare{}, false, 0, modelShare{}, modelShare{}
	})
}

// takeShare makes the steps from a call to a share.
func (s modelState) takeShare(r rules, change func(bool, string, func(*modelState))) {
	none := s.answer == (modelShare{}) && s.share.units == 0
	change(!s.calls && none, "call", func(n *modelState) { n.calls, n.sentAt = true, n.clock })
	change(s.calls, "lose the call", func(n *modelState) { n.calls = false })
	for units := int8(1); units <= modelLimit-s.count; units++ {
		change(s.calls, "charge", func(n *modelState) {
			n.count += units
			lasts := int16((n.window()+1)*modelWindow-n.tick) * (perTick - 1)
			if r.noAllowance {
				lasts = lasts / (perTick - 1) * perTick
			}
			n.calls, n.answer = false, modelShare{units, n.window(), n.resets, n.sentAt + lasts}
			if r.fromAnswer {
				n.answer.ends = lasts
			}
		})
	}
	change(s.answer.units > 0, "lose the answer", func(n *modelState) { n.answer = modelShare{} })
	change(s.answer.units > 0, "learn", func(n *modelState) {
		n.share, n.answer = n.answer, modelShare{}
		if r.fromAnswer {
			n.share.ends += n.clock
		}
	})
}

// explore visits all states, and returns how many there are and one that breaks the promise:
// more requests are admitted in a window than units were to be had.
func explore(r rules) (states int, broken string) {
	first := modelState{allowed: modelLimit}
	before := map[modelState]modelState{first: first}
	how := map[modelState]string{}
	queue := []modelState{first}
	for len(queue) > 0 && broken == "" {
		s := queue[0]
		queue = queue[1:]
		s.next(r, func(n modelState, what string) {
			if _, seen := before[n]; seen || broken != "" {
				return
			}
			before[n], how[n] = s, what
			queue = append(queue, n)
			if n.admitted > n.allowed {
				for at := n; at != first; at = before[at] {
					broken = how[at] + "\n" + broken
				}
			}
		})
	}
	return len(before), broken
}

func TestProtocol(t *testing.T) {
	states, broken := explore(rules{})
	if broken != "" || states < 10_000 {
		t.Errorf("%d states, more were admitted than there were units:\n%s", states, broken)
	}
	t.Logf("%d states", states)
	for name, r := range map[string]rules{
		"a share that never ends":                {neverEnds: true},
		"an end counted from the answer":         {fromAnswer: true},
		"no allowance for drift":                 {noAllowance: true},
		"a return that is repeated":              {returnTwice: true},
		"a return from before a reset":           {ignoreResets: true},
		"a return to the window after the share": {anyWindow: true},
	} {
		if _, broken := explore(r); broken == "" {
			t.Errorf("%s breaks nothing: the model does not see it", name)
		}
	}
}
