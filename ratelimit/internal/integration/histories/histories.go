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

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// An Engine is what histories are made on.
type Engine interface {
	ratelimit.Limiter
	ratelimit.Peeker
	ratelimit.Resetter
	ratelimit.Adjuster
	ratelimit.Banner
}

// Options of a history. The zero value works.
type Options struct {
	Callers  int           // 0 means 8
	Calls    int           // of each caller; 0 means 200
	Subjects int           // 0 means 2
	Seed     uint64        // of what the callers do
	Errors   bool          // calls may fail, and it is then not known whether they had an effect
	BansOnly bool          // callers peek, ban and unban, and do nothing else
	Pace     time.Duration // the longest pause of a caller between two calls; 0: none
}

// Check makes a history of random calls and fails the test if no order explains
// it. The engine has none of the subjects "a", "b" and so on.
func Check(t testing.TB, limiter Engine, o Options) {
	t.Helper()
	h := history{Options: o, engine: limiter, start: time.Now()}
	h.Callers, h.Calls, h.Subjects = cmp.Or(o.Callers, 8), cmp.Or(o.Calls, 200), cmp.Or(o.Subjects, 2)
	var wg sync.WaitGroup
	for caller := range h.Callers {
		wg.Go(func() { h.call(t, caller) })
	}
	wg.Wait()
	const patience = time.Minute
	switch result, info := porcupine.CheckOperationsVerbose(model, h.operations(), patience); result {
	case porcupine.Illegal:
		t.Errorf("history %d: no order of the calls explains what they were answered:\n%s", h.Seed, describe(info))
	case porcupine.Unknown:
		t.Errorf("history %d: no order of the calls was found in %v", h.Seed, patience)
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
	Options
	engine Engine
	start  time.Time

	mu  sync.Mutex
	ops []porcupine.Operation
}

// call does the calls of one caller.
func (h *history) call(t testing.TB, caller int) {
	r := rand.New(rand.NewPCG(h.Seed, uint64(caller)))
	var admitted []admission // what can be refunded
	for range h.Calls {
		in := input{subject: string(rune('a' + r.IntN(h.Subjects))), op: take, cost: 1}
		switch n := r.IntN(100); {
		case h.BansOnly:
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
		case n < 36 && len(admitted) > 0:
			last := admitted[len(admitted)-1]
			admitted = admitted[:len(admitted)-1]
			in = input{subject: last.subject, op: refund, cost: last.d.Cost, d: last.d}
		case n < 40:
			in.op = charge
		case n < 50:
			in.cost = 2
		}
		if h.Pace > 0 {
			time.Sleep(rand.N(h.Pace))
		}
		called := time.Since(h.start)
		out, d := h.do(in)
		returned := time.Since(h.start)
		if out.err != nil {
			if !h.Errors {
				t.Errorf("%v: %v", in, out.err)
				return
			}
			returned = 1 << 62 // it may have its effect at any time, or never
		}
		if in.op == take && d.Allowed() {
			admitted = append(admitted, admission{in.subject, &d})
		}
		h.mu.Lock()
		h.ops = append(h.ops, porcupine.Operation{
			ClientId: caller, Input: in, Output: out, Call: int64(called), Return: int64(returned),
		})
		h.mu.Unlock()
	}
}

// operations returns the history. One caller's calls do not overlap, so that a
// caller goes on under another number once a call was left without an answer.
func (h *history) operations() []porcupine.Operation {
	number := make(map[int]int)
	next := h.Callers
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

func (h *history) do(in input) (out output, d ratelimit.Decision) {
	ctx := context.Background()
	switch in.op {
	case take:
		d, out.err = h.engine.Take(ctx, in.subject, plan, in.cost)
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
		out.err = h.engine.Ban(ctx, in.subject, ratelimit.MaxWindow)
	case unban:
		out.unbanned, out.err = h.engine.Unban(ctx, in.subject)
	}
	out.outcome, out.strikesLeft = d.Outcome, d.StrikesLeft
	out.struck, out.banStarted = d.Struck, d.BanStarted
	for i := range engine.Of(plan).Len() {
		out.remaining[i] = d.States[i].Remaining
	}
	return out, d
}
