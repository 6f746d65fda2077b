package histories

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// plan is the one of every call. Its windows and bans do not end during a test,
// so that what a call is answered depends on the calls before it alone.
var plan = ratelimit.MustPlan("histories",
	ratelimit.Penalty{
		Strikes: 3, Ban: ratelimit.MaxWindow, Growth: 1, Max: ratelimit.MaxWindow, Forgive: ratelimit.MaxWindow, Decay: ratelimit.MaxWindow,
	},
	ratelimit.Quota{Limit: 5, Window: ratelimit.MaxWindow / 2},
	ratelimit.Quota{Limit: 7, Window: ratelimit.MaxWindow},
)

type operation string

const (
	take   operation = "take"
	peek   operation = "peek"
	reset  operation = "reset"
	refund operation = "refund"
	charge operation = "charge"
	ban    operation = "ban"
	unban  operation = "unban"
)

type input struct {
	op      operation
	subject string
	cost    int64
	d       *ratelimit.Decision // what is refunded
}

type output struct {
	outcome     ratelimit.Outcome
	remaining   [2]int64
	strikesLeft int
	struck      bool
	banStarted  bool
	unbanned    bool
	err         error // what became of the call is not known
}

// A state is that of one subject.
type state struct {
	used    int64
	strikes int
	banned  bool
}

// step does one call. It is the whole of what the engine promises.
func (s state) step(in input) (state, output) {
	tolerated := plan.Penalty().Strikes
	var out output
	fits := true
	for i := range engine.Of(plan).Len() {
		fits = fits && s.used+in.cost <= engine.Of(plan).Limit(i)
	}
	switch {
	case in.op == reset:
		return state{}, out
	case in.op == refund:
		s.used = max(s.used-in.cost, 0)
		return s, out
	case in.op == charge:
		s.used += in.cost
		return s, out
	case in.op == ban:
		s.banned, s.strikes = true, 0
		return s, out
	case in.op == unban:
		out.unbanned = s.banned
		s.banned, s.strikes = false, 0
		return s, out
	case s.banned:
		out.outcome = ratelimit.Banned
	case fits:
		out.outcome, out.strikesLeft = ratelimit.Allowed, tolerated-s.strikes
		if in.op == take {
			s.used += in.cost
			s.strikes, out.strikesLeft = 0, tolerated
		}
	case in.op == peek:
		out.outcome, out.strikesLeft = ratelimit.Limited, tolerated-s.strikes
	case s.strikes == tolerated:
		s.banned, s.strikes = true, 0
		out.outcome, out.struck, out.banStarted = ratelimit.Banned, true, true
	default:
		s.strikes++
		out.outcome, out.struck, out.strikesLeft = ratelimit.Limited, true, tolerated-s.strikes
	}
	for i := range engine.Of(plan).Len() {
		out.remaining[i] = max(engine.Of(plan).Limit(i)-s.used, 0)
	}
	return s, out
}

var model = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		bySubject := map[string][]porcupine.Operation{}
		for _, op := range history {
			name := op.Input.(input).subject
			bySubject[name] = append(bySubject[name], op)
		}
		var partitions [][]porcupine.Operation
		for _, ops := range bySubject {
			partitions = append(partitions, ops)
		}
		return partitions
	},
	Init: func() any { return state{} },
	Step: func(s, in, out any) (bool, any) {
		after, want := s.(state).step(in.(input))
		got := out.(output)
		return got.err != nil || got == want, after
	},
}

func describeCall(in, out any) string {
	i, o := in.(input), out.(output)
	what := fmt.Sprintf("%s %s %d", i.op, i.subject, i.cost)
	switch {
	case o.err != nil:
		return what + ": " + o.err.Error()
	case i.op == unban:
		return fmt.Sprintf("%s: %v", what, o.unbanned)
	case o.outcome == 0: // not a decision
		return what
	}
	return fmt.Sprintf("%s: %v, %d remaining, %d strikes left, struck %v, ban started %v",
		what, o.outcome, o.remaining, o.strikesLeft, o.struck, o.banStarted)
}
