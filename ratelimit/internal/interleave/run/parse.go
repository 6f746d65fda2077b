package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// A testCase is a few calls made at once, on an engine that is set up for them.
type testCase struct {
	name    string
	max     int    // Options.MaxSubjects
	setUp   []call // one after the other
	threads [][]call
	after   []call // one after the other; what they are answered is the final state
}

// few is a number of subjects that the engine keeps in one table.
const few = 100

// parse reads a case: the calls that set the engine up, the calls of each thread, and, if
// it is not final of every subject, what is asked after all.
//
//	take a two, clock 2s => take 2 a two, ban a | all a two + 2 b two => peek a two
//
// A call names the units if they are more than one, the subject and the plan. The set-up
// may begin with "max 1", the largest number of subjects, and have "fill 5", a request for
// so many subjects of no interest.
func parse(r row) *testCase {
	c := &testCase{name: r.name, max: few}
	parts := append(strings.Split(r.text, "=>"), "")
	seen := subjects{plans: map[string][]string{}}
	for _, text := range split(parts[0], ",") {
		if most, ok := strings.CutPrefix(text, "max "); ok {
			c.max = number(most)
		} else if n, ok := strings.CutPrefix(text, "fill "); ok {
			for i := range number(n) {
				c.setUp = append(c.setUp, parseCall(fmt.Sprintf("take filler%d large", i)))
			}
		} else {
			c.setUp = append(c.setUp, seen.with(parseCall(text)))
		}
	}
	for _, thread := range split(parts[1], "|") {
		var calls []call
		for _, text := range split(thread, ",") {
			calls = append(calls, seen.with(parseCall(text)))
		}
		c.threads = append(c.threads, calls)
	}
	for _, text := range split(parts[2], ",") {
		if words := strings.Fields(text); words[0] == "final" {
			c.after = append(c.after, final(words[1], words[2:]...)...)
		} else {
			c.after = append(c.after, parseCall(text))
		}
	}
	for _, name := range seen.names {
		if parts[2] == "" {
			c.after = append(c.after, final(name, seen.plans[name]...)...)
		}
	}
	return c
}

func split(text, by string) (parts []string) {
	for part := range strings.SplitSeq(text, by) {
		if part = strings.TrimSpace(part); part != "" {
			parts = append(parts, part)
		}
	}
	return parts
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	if err != nil {
		panic(err)
	}
	return n
}

// final is where a subject stands, and how its next requests are decided.
func final(subject string, plans ...string) (calls []call) {
	for _, plan := range plans {
		calls = append(calls, parseCall("peek "+subject+" "+plan))
	}
	calls = append(calls, parseCall("bans"))
	for _, plan := range plans {
		calls = append(calls, parseCall("take "+subject+" "+plan))
	}
	return append(calls, calls[0])
}

// subjects are those that calls charge, in order, with the names of their plans.
type subjects struct {
	names []string
	plans map[string][]string
}

// with notes what a call charges, and returns it.
func (s *subjects) with(c call) call {
	for _, charge := range c.charges {
		name, plan := charge.Subject, charge.Plan.Name()
		if !slices.Contains(s.names, name) {
			s.names = append(s.names, name)
		}
		if !slices.Contains(s.plans[name], plan) {
			s.plans[name] = append(s.plans[name], plan)
		}
	}
	return c
}

func parseCall(text string) call {
	before, evicted, _ := strings.Cut(text, " evicting ")
	what, rest, _ := strings.Cut(before, " ")
	c := call{text: text, what: what, subject: name(rest)}
	for _, subject := range strings.Fields(evicted) {
		c.evicts = append(c.evicts, name(subject))
	}
	switch what {
	case "take", "all", "peek", "charge":
		for _, part := range split(rest, "+") {
			words := strings.Fields(part)
			charge := ratelimit.Charge{Cost: 1, Subject: name(words[len(words)-2]), Plan: plans[words[len(words)-1]]}
			if len(words) == 3 {
				charge.Cost = int64(number(words[0]))
			}
			c.charges = append(c.charges, charge)
		}
		c.subject = c.charges[0].Subject
	case "clock":
		c.moves, _ = time.ParseDuration(rest)
	}
	return c
}

// name returns the name of a subject. Some have names that lead to slots beside each other
// in the smallest table.
func name(word string) string {
	if found := places()[word]; found != "" {
		return found
	}
	return word
}

// places returns the names of three subjects with searches that begin at one slot, so that
// the second stands behind the first, and the third behind the second; and that of a
// subject with a search that begins where that for the conduct of "a" begins.
var places = sync.OnceValue(func() map[string]string {
	one, front := namesAt(3, home(key("n0", false))), namesAt(1, home(key("a", true)))
	return map[string]string{"first": one[0], "second": one[1], "third": one[2], "front": front[0]}
})

// namesAt returns so many names with a search that begins at a slot.
func namesAt(n int, slot uint64) (names []string) {
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprint("n", i); home(key(name, false)) == slot {
			names = append(names, name)
		}
	}
	return names
}

// home returns the slot where the search for a key begins in the smallest table:
// the upper bits of the lower half. If that changes, the cases that use it still
// hold, and try less.
func home(key uint64) uint64 {
	const bits = 3
	return key << 32 >> (64 - bits)
}

// key returns the key that an engine saves for a subject, or for its ban.
func key(subject string, banned bool) (key uint64) {
	l := newEngine(few, func() time.Time { return start })
	var err error
	if banned {
		err = l.Ban(ctx, subject, time.Minute, "")
	} else {
		_, err = l.Take(ctx, subject, large, 1)
	}
	if err != nil {
		panic(err)
	}
	_ = l.Save(func(records []memory.Record) error {
		key = records[0].Key
		return nil
	})
	return key
}
