package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
	"github.com/animalstore/gatehouse/ratelimit/enginetest"
)

// A turn is one call in an order that might explain a history: the time at which
// the model makes it, and the subject that is forgotten for it, if one is.
type turn struct {
	number int
	at     time.Duration
	evict  string
}

// An explainer looks for an order of the calls, one after the other, in which the
// model answers as the engine did, that keeps calls in order of which one had
// ended before the other began (linearizability).
//
// The engine may differ from the model in two ways, both of which its package
// documentation names. A call may be decided by any time that the clock showed
// while it was under way, also if another call was decided by a later time before.
// And at the bound, a new subject may take the place of one that has neither used
// half of a quota nor has strikes or a ban; if there is none, it is refused.
type explainer struct {
	c     *testCase
	calls []call // those of the threads, and then those after
	made  int    // of the threads
	h     *history
	order []turn
	tries []string // what is wrong with the orders that were tried
	far   int      // how many calls the best of them explains
}

// explain returns why no order explains the history, or "".
func (x *execution) explain(calls []call) string {
	e := explainer{c: x.c, calls: slices.Concat(calls, x.c.after), made: len(calls), h: &x.h}
	if x.h.errors == "" && e.search() {
		return ""
	}
	var b strings.Builder
	b.WriteString(x.h.errors)
	for i, c := range e.calls {
		fmt.Fprintf(&b, "  call %d, %s, %v: %v\n", i, e.thread(i), c.text, x.h.answers[i])
	}
	if x.h.evicted > 0 {
		fmt.Fprintf(&b, "  subjects forgotten at the bound: %d\n", x.h.evicted)
	}
	for _, try := range e.tries {
		fmt.Fprintf(&b, "  %s\n", try)
	}
	return "no order of the calls explains their answers\n" + b.String()
}

func (e *explainer) thread(number int) string {
	for i, calls := range e.c.threads {
		if number -= len(calls); number < 0 {
			return "thread " + string(rune('A'+i))
		}
	}
	return "after all"
}

// search tries all that can come next in the order.
func (e *explainer) search() bool {
	if len(e.order) > 0 && !e.agrees() {
		return false
	}
	if len(e.order) == len(e.calls) {
		return true
	}
	for i, c := range e.calls {
		if !e.mayFollow(i) {
			continue
		}
		times := slices.Compact(e.h.times[i][:])
		if d := e.h.answers[i].d; d.Plan != nil {
			at := time.Unix(0, d.Time).Sub(start)
			if !slices.Contains(times, at) {
				e.note("call %d was decided by a time that the clock did not show meanwhile", i)
				continue
			}
			times = []time.Duration{at}
		}
		for _, at := range times {
			for _, evict := range append([]string{""}, c.evicts...) {
				e.order = append(e.order, turn{i, at, evict})
				if e.search() {
					return true
				}
				e.order = e.order[:len(e.order)-1]
			}
		}
	}
	return false
}

// mayFollow reports whether call i is not in the order, and all calls are that
// had ended when it began.
func (e *explainer) mayFollow(i int) bool {
	var before uint16
	for _, t := range e.order {
		if t.number == i {
			return false
		}
		before |= 1 << t.number
	}
	if i >= e.made {
		return len(e.order) == i
	}
	return e.h.before[i]&^before == 0
}

// agrees makes the calls of the order on a new model, and reports whether its
// answer to the last one is the engine's, as those before are known to be.
func (e *explainer) agrees() bool {
	now := start
	model := enginetest.NewModel(func() time.Time { return now })
	given := e.c.prepare(model, func(c call) { now = now.Add(c.moves) })
	var got answer
	var evicted uint64
	for _, t := range e.order {
		now = start.Add(t.at)
		if t.evict != "" {
			if evicted++; !evictable(model, t.evict) {
				return false
			}
			_ = model.Reset(ctx, t.evict)
		}
		if got = e.h.answers[t.number]; !full(model, e.calls[t.number], got) {
			got = e.calls[t.number].do(model, given)
		}
	}
	last := e.order[len(e.order)-1].number
	switch want := e.h.answers[last]; {
	case got != want:
		e.note("call %d would then be answered %v", last, got)
		return false
	case len(e.order) >= e.made && evicted != e.h.evicted:
		return false
	}
	return true
}

// evictable reports whether a subject of the plan large may be forgotten for
// another.
func evictable(m enginetest.Model, subject string) bool {
	d, err := m.Peek(ctx, subject, large)
	if err != nil || d.Outcome == ratelimit.Banned || d.StrikesLeft != large.Penalty().Strikes {
		return false
	}
	for i := range engine.Of(large).Len() {
		if d.States[i].Remaining*2 <= engine.Of(large).Quota(i).Limit {
			return false
		}
	}
	return true
}

// full reports whether the engine rightly had no place for the subject of a call:
// none of those that might have been forgotten for it could be.
func full(m enginetest.Model, c call, a answer) bool {
	return len(c.evicts) > 0 && strings.Contains(a.err, ratelimit.ErrUnavailable.Error()) &&
		!slices.ContainsFunc(c.evicts, func(subject string) bool { return evictable(m, subject) })
}

// note keeps what is wrong with an order, if no other one explains more calls.
func (e *explainer) note(format string, args ...any) {
	if len(e.order) < e.far {
		return
	}
	if len(e.order) > e.far {
		e.far, e.tries = len(e.order), nil
	}
	var numbers []string
	for _, t := range e.order {
		text := fmt.Sprint(t.number)
		if t.evict != "" {
			text += " (forgets " + t.evict + ")"
		}
		numbers = append(numbers, text)
	}
	if try := "order " + strings.Join(numbers, ", ") + ": " + fmt.Sprintf(format, args...); !slices.Contains(e.tries, try) {
		e.tries = append(e.tries, try)
	}
}
