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
	process  modelProcess
}

type modelProcess struct {
	clock int16
	share modelShare
	// A call, an answer, and a return are on their way, or none. The call was sent at a time of
	// the process's clock.
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
	if s.tick < modelTicks-1 {
		for _, advances := range []int16{perTick - 1, perTick} {
			n := s
			n.tick++
			if n.window() != s.window() {
				n.count, n.admitted, n.allowed = 0, 0, modelLimit
			}
			n.process.clock += advances
			visit(n, fmt.Sprintf("tick %d", n.tick))
		}
	}
	if s.resets == 0 {
		n := s
		n.count, n.resets, n.admitted = 0, 1, 0
		n.allowed = modelLimit + n.process.share.units + n.process.answer.units
		visit(n, "reset")
	}
	if s.count < modelLimit {
		n := s
		n.count, n.admitted = n.count+1, n.admitted+1
		visit(n, "another process admits")
	}
	s.step(r, visit)
}

// step makes the steps of the process with shares.
func (s modelState) step(r rules, visit func(modelState, string)) {
	p := &s.process
	change := func(what string, f func(n *modelState, p *modelProcess)) {
		n := s
		f(&n, &n.process)
		visit(n, what)
	}
	if p.share.units > 0 && (r.neverEnds || p.clock < p.share.ends) {
		change("admit", func(n *modelState, p *modelProcess) { n.admitted++; p.share.units-- })
	}
	if !p.calls && p.answer == (modelShare{}) && p.share.units == 0 {
		change("call", func(_ *modelState, p *modelProcess) { p.calls, p.sentAt = true, p.clock })
	}
	if p.calls {
		change("lose the call", func(_ *modelState, p *modelProcess) { p.calls = false })
		for units := int8(1); units <= modelLimit-s.count; units++ {
			change("charge", func(n *modelState, p *modelProcess) {
				n.count += units
				left := int16((n.window()+1)*modelWindow - n.tick)
				lasts := left * (perTick - 1)
				if r.noAllowance {
					lasts = left * perTick
				}
				p.calls, p.answer = false, modelShare{units, n.window(), n.resets, p.sentAt + lasts}
				if r.fromAnswer {
					p.answer.ends = lasts
				}
			})
		}
	}
	if p.answer.units > 0 {
		change("lose the answer", func(_ *modelState, p *modelProcess) { p.answer = modelShare{} })
		change("learn", func(_ *modelState, p *modelProcess) {
			p.share, p.answer = p.answer, modelShare{}
			if r.fromAnswer {
				p.share.ends += p.clock
			}
		})
	}
	if p.share.units > 0 && p.back.units == 0 {
		change("give back", func(_ *modelState, p *modelProcess) { p.back, p.share = p.share, modelShare{} })
	}
	if p.back.units > 0 {
		change("lose the return", func(_ *modelState, p *modelProcess) { p.back = modelShare{} })
		change("take back", func(n *modelState, p *modelProcess) {
			if (r.anyWindow || p.back.window == n.window()) && (r.ignoreResets || p.back.resets == n.resets) {
				n.count = max(n.count-p.back.units, 0)
			}
			if !r.returnTwice {
				p.back = modelShare{}
			}
		})
	}
	if p.calls || p.share.units+p.answer.units+p.back.units > 0 {
		change("die", func(_ *modelState, p *modelProcess) { *p = modelProcess{clock: p.clock} })
	}
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
