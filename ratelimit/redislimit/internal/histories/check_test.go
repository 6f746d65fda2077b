// Package histories records what several callers do to an engine at once, and
// checks that some order of the calls, one after the other, explains every answer
// (linearizability).
package histories

import (
	"cmp"
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"github.com/animalstore/gatehouse/internal/fixedwindow"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// A limiter is what histories are made on.
type limiter interface {
	ratelimit.Limiter
	engine.Peeker
	Reset(ctx context.Context, subject string) error
	engine.Adjuster
	engine.Banner
}

// options of a history. The zero value works.
type options struct {
	callers  int           // 0 means 8
	calls    int           // of each caller; 0 means 200
	subjects int           // 0 means 2
	seed     uint64        // of what the callers do
	errors   bool          // calls may fail, and it is then not known whether they had an effect
	bansOnly bool          // callers peek, ban and unban, and do nothing else
	pace     time.Duration // the longest pause of a caller between two calls; 0: none
}

// check makes a history of random calls and fails the test if no order explains
// it. The engine has none of the subjects "a", "b" and so on.
func check(t testing.TB, l limiter, o options) {
	t.Helper()
	h := history{options: o, engine: l, start: time.Now()}
	h.callers, h.calls, h.subjects = cmp.Or(o.callers, 8), cmp.Or(o.calls, 200), cmp.Or(o.subjects, 2)
	var wg sync.WaitGroup
	for caller := range h.callers {
		wg.Go(func() { h.call(t, caller) })
	}
	wg.Wait()
	const patience = time.Minute
	switch result, info := porcupine.CheckOperationsVerbose(model, h.operations(), patience); result {
	case porcupine.Illegal:
		t.Errorf("history %d: no order of the calls explains what they were answered:\n%s", h.seed, describe(info))
	case porcupine.Unknown:
		t.Errorf("history %d: no order of the calls was found in %v", h.seed, patience)
	}
}

// describe shows how far an order was found for the calls to one subject.
func describe(info porcupine.LinearizationInfo) string {
	var text strings.Builder
	for _, found := range info.PartialLinearizationsOperations() {
		if len(found) == 0 {
			continue
		}
		longest := slices.MaxFunc(found, func(a, b []porcupine.Operation) int { return len(a) - len(b) })
		fmt.Fprintf(&text, "an order of %d calls, of which the last are\n", len(longest))
		for _, op := range longest[max(len(longest)-10, 0):] {
			fmt.Fprintf(&text, "  caller %d: %s\n", op.ClientId, describeCall(op.Input, op.Output))
		}
	}
	return text.String()
}

type history struct {
	options
	engine limiter
	start  time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

// call does the calls of one caller.
func (h *history) call(t testing.TB, caller int) {
	r := rand.New(rand.NewPCG(h.seed, uint64(caller)))
	leaser, leases := h.engine.(engine.Leaser)
	var admitted, shares []admission // what can be refunded, and given back
	for range h.calls {
		in := h.choose(r, leases, &admitted, &shares)
		if h.pace > 0 {
			time.Sleep(rand.N(h.pace))
		}
		called := time.Since(h.start)
		out, d := h.do(leaser, in)
		returned := time.Since(h.start)
		if out.err != nil {
			if !h.errors {
				t.Errorf("%v: %v", in, out.err)
				return
			}
			returned = 1 << 62 // it may have its effect at any time, or never
		}
		if in.op == take && d.Allowed() {
			admitted = append(admitted, admission{in.subject, &d})
		}
		if out.charged > 0 {
			shares = append(shares, admission{in.subject, &d})
		}
		h.mu.Lock()
		h.ops = append(h.ops, porcupine.Operation{
			ClientId: caller, Input: in, Output: out, Call: int64(called), Return: int64(returned),
		})
		h.mu.Unlock()
	}
}

// choose returns a random call. One that refunds an admission, or gives back a share, takes it
// from those that are left.
func (h *history) choose(r *rand.Rand, leases bool, admitted, shares *[]admission) input {
	in := input{subject: string(rune('a' + r.IntN(h.subjects))), op: take, cost: 1}
	switch n := r.IntN(100); {
	case h.bansOnly:
		in.op = []operation{peek, peek, peek, peek, ban, unban}[n%6]
		in.cost = 0
	case n < 5:
		in.op, in.cost = reset, 0
	case n < 8:
		in.op, in.cost = ban, 0
	case n < 14:
		in.op, in.cost = unban, 0
	case n < 30:
		in.op = peek
	case n < 36 && len(*admitted) > 0:
		last := (*admitted)[len(*admitted)-1]
		*admitted = (*admitted)[:len(*admitted)-1]
		in = input{subject: last.subject, op: refund, cost: last.d.Cost, d: last.d}
	case n < 40:
		in.op = charge
	case n < 50:
		in.cost = 2
	case n < 65 && leases:
		in.op, in.cost, in.terms = lease, r.Int64N(3), engine.Terms{More: r.Int64N(5), Denied: r.IntN(6) / 4}
		if len(*shares) > 0 && r.IntN(2) == 0 {
			in.subject, in.terms.Back = (*shares)[0].subject, (*shares)[0].d
			in.terms.Back.Cost = 1 + r.Int64N(in.terms.Back.Cost)
			*shares = (*shares)[1:]
		}
	}
	return in
}

// operations returns the history. One caller's calls do not overlap, so that a
// caller goes on under another number once a call was left without an answer.
func (h *history) operations() []porcupine.Operation {
	number := make(map[int]int)
	next := h.callers
	for i, op := range h.ops {
		caller := op.ClientId
		if n, changed := number[caller]; changed {
			h.ops[i].ClientId = n
		}
		if op.Output.(output).err != nil {
			number[caller] = next
			next++
		}
	}
	return h.ops
}

// An admission is a request that was admitted.
type admission struct {
	subject string
	d       *ratelimit.Decision
}

func (h *history) do(leaser engine.Leaser, in input) (out output, d ratelimit.Decision) {
	ctx := context.Background()
	switch in.op {
	case take:
		d, out.err = h.engine.Take(ctx, in.subject, plan, in.cost)
	case lease:
		if d, out.err = leaser.Lease(ctx, in.subject, plan, in.cost, in.terms); d.Allowed() {
			out.charged = d.Cost
		}
		out.generation, _ = d.Receipt.Generation()
	case peek:
		d, out.err = h.engine.Peek(ctx, in.subject, plan)
	case refund:
		out.err = h.engine.Adjust(ctx, in.subject, in.d, 0, "")
	case charge:
		elsewhere := engine.Uncounted(plan, 0, time.Now())
		out.err = h.engine.Adjust(ctx, in.subject, &elsewhere, in.cost, "")
	case reset:
		out.err = h.engine.Reset(ctx, in.subject)
	case ban:
		out.err = h.engine.Ban(ctx, in.subject, fixedwindow.MaxLength, "")
	case unban:
		out.unbanned, out.err = h.engine.Unban(ctx, in.subject)
	}
	out.outcome, out.strikesLeft = d.Outcome, d.StrikesLeft
	out.struck = d.Struck
	for i := range engine.Of(plan).Len() {
		out.remaining[i] = d.States[i].Remaining
	}
	return out, d
}

// plan is the one of every call. Its windows and bans do not end during a test,
// so that what a call is answered depends on the calls before it alone.
var plan = ratelimit.MustPlan("histories",
	ratelimit.Penalty{
		Strikes: 3, Ban: fixedwindow.MaxLength, Growth: 1, Max: fixedwindow.MaxLength, Forgive: fixedwindow.MaxLength, Decay: fixedwindow.MaxLength,
	},
	ratelimit.Quota{Limit: 5, Window: fixedwindow.MaxLength / 2},
	ratelimit.Quota{Limit: 7, Window: fixedwindow.MaxLength},
)

type operation string

const (
	take   operation = "take"
	lease  operation = "lease"
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
	terms   engine.Terms        // of a lease
}

type output struct {
	outcome     ratelimit.Outcome
	remaining   [2]int64
	strikesLeft int
	struck      bool
	unbanned    bool
	charged     int64  // by a lease
	generation  uint32 // that the answer of a lease names
	err         error  // what became of the call is not known
}

// A state is that of one subject.
type state struct {
	used    int64
	strikes int
	banned  bool

	leased     bool // charged by a lease, so that the generation is known: each engine begins with its own
	generation uint32
}

// step does one call. It is the whole of what the engine promises.
func (s state) step(in input) (state, output) {
	tolerated := plan.Penalty().Strikes
	var out output
	fits := true
	for i := range engine.Of(plan).Len() {
		fits = fits && s.used+in.cost <= engine.Of(plan).Quota(i).Limit
	}
	switch {
	case in.op == reset:
		return state{leased: s.leased, generation: s.generation + 1}, out
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
		out.outcome, out.struck = ratelimit.Banned, true
	default:
		s.strikes++
		out.outcome, out.struck, out.strikesLeft = ratelimit.Limited, true, tolerated-s.strikes
	}
	for i := range engine.Of(plan).Len() {
		out.remaining[i] = max(engine.Of(plan).Quota(i).Limit-s.used, 0)
	}
	return s, out
}

// lease does a lease. The generation is what the engine says when a lease first charges.
func (s state) lease(in input, got output) (state, output) {
	if back := in.terms.Back; back != nil {
		if of, _ := back.Receipt.Generation(); s.leased && of == s.generation {
			s.used = max(s.used-back.Cost, 0)
		}
	}
	as := func(op operation, cost int64) (state, output) { return s.step(input{op: op, cost: cost}) }
	share := in.terms.More
	for i := range engine.Of(plan).Len() {
		share = min(share, (engine.Of(plan).Quota(i).Limit-s.used-in.cost)/2)
	}
	_, out := as(peek, max(in.cost, 1))
	fits := out.outcome == ratelimit.Allowed
	if fits && in.cost+share > 0 {
		s, out = as(take, in.cost+share)
		if !s.leased && got.err == nil {
			s.leased, s.generation = true, got.generation
		}
		out.charged, out.generation = in.cost+share, s.generation
		return s, out
	}
	struck := false
	for range in.terms.Denied + int(min(in.cost, 1)) {
		if !fits {
			s, out = as(take, max(in.cost, 1))
			struck = struck || out.struck
		}
	}
	if in.cost == 0 {
		_, out = as(peek, 1+min(in.terms.More, 1))
	}
	out.struck, out.generation = struck, got.generation
	if s.leased {
		out.generation = s.generation
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
		call, got := in.(input), out.(output)
		after, want := s.(state).step(call)
		if call.op == lease {
			after, want = s.(state).lease(call, got)
		}
		return got.err != nil || got == want, after
	},
}

func describeCall(in, out any) string {
	i, o := in.(input), out.(output)
	what := fmt.Sprintf("%s %s %d", i.op, i.subject, i.cost)
	if i.op == lease {
		what += fmt.Sprintf(", %d more, %d denied, charged %d of generation %d", i.terms.More, i.terms.Denied, o.charged, o.generation)
		if b := i.terms.Back; b != nil {
			of, _ := b.Receipt.Generation()
			what += fmt.Sprintf(", %d back of generation %d", b.Cost, of)
		}
	}
	switch {
	case o.err != nil:
		return what + ": " + o.err.Error()
	case i.op == unban:
		return fmt.Sprintf("%s: %v", what, o.unbanned)
	case o.outcome == 0: // not a decision
		return what
	}
	return fmt.Sprintf("%s: %v, %d remaining, %d strikes left, struck %v",
		what, o.outcome, o.remaining, o.strikesLeft, o.struck)
}
