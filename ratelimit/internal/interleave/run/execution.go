package main

import (
	"maps"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/atomic"
	"github.com/animalstore/gatehouse/ratelimit/internal/interleave/sched"
	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// start is where the clock stands when a case begins: before the end of a window
// of a minute, and within a second.
var start = time.Date(2026, time.March, 1, 12, 0, 58, 250_000_000, time.UTC)

// secret makes the engine hash every subject alike in each run.
var secret = []byte("a secret that every run shares..")

// maxCalls is how many calls of a case are compared.
const maxCalls = 16

// A history is what one run of a case answered. It can be compared.
type history struct {
	answers [maxCalls]answer
	before  [maxCalls]uint16           // the calls that had ended before the call began
	times   [maxCalls][2]time.Duration // by how much the clock had moved when the call began and when it ended
	evicted uint64                     // how many subjects were forgotten at the bound
	errors  string                     // what was wrong with the engine in itself
}

// An execution makes the runs of a case, and keeps the histories that it has
// checked.
type execution struct {
	c       *testCase
	now     atomic.Int64
	begun   time.Duration // by how much the set-up moved the clock
	engine  *memory.Limiter
	given   map[string]ratelimit.Decision
	saved   map[uint64]memory.Record
	h       history
	spans   [maxCalls][2]int
	checked map[history]string
}

func (x *execution) clock() time.Time { return time.Unix(0, x.now.Load()) }

// elapsed is by how much the clock has moved.
func (x *execution) elapsed() time.Duration { return time.Unix(0, x.now.Load()).Sub(start) }

func newEngine(most int, clock func() time.Time) *memory.Limiter {
	l, err := memory.New(memory.Options{MaxSubjects: most, Secret: secret, Now: clock})
	if err != nil {
		panic(err)
	}
	return l
}

// start sets the engine up and returns the threads.
func (x *execution) start() (threads []func()) {
	x.now.Store(start.UnixNano())
	x.engine = newEngine(x.c.max, x.clock)
	x.saved = map[uint64]memory.Record{}
	x.h = history{}
	x.given = x.c.prepare(x.engine, func(c call) { x.special(c) })
	x.h.evicted = x.engine.Stats().Evicted
	x.begun = x.elapsed()
	number := 0
	for _, calls := range x.c.threads {
		first := number
		number += len(calls)
		threads = append(threads, func() {
			for i, c := range calls {
				x.call(first+i, c)
			}
		})
	}
	return threads
}

// prepare does the set-up and returns the last decision that was allowed to each
// subject.
func (c *testCase) prepare(l limiter, special func(call)) map[string]ratelimit.Decision {
	given := map[string]ratelimit.Decision{}
	for _, s := range c.setUp {
		if a := s.do(l, given); a.d.Outcome == ratelimit.Allowed && (s.what == "take" || s.what == "all") {
			given[s.subject] = a.d
		}
		special(s)
	}
	return given
}

// call does one call, in a thread or after all.
func (x *execution) call(number int, c call) {
	began, ended := sched.Call(func() {
		x.h.answers[number] = c.do(x.engine, x.given)
		x.special(c)
	})
	x.spans[number] = [2]int{began, ended}
}

// special does the calls that are about the engine and its clock, which the model
// does not have.
func (x *execution) special(c call) {
	switch c.what {
	case "clock":
		x.now.Add(int64(c.moves))
	case "save":
		err := x.engine.Save(func(records []memory.Record) error {
			for _, r := range records {
				if x.saved[r.Key] = r; r.Data == nil {
					delete(x.saved, r.Key)
				}
			}
			return nil
		})
		if err != nil {
			x.h.errors += "Save: " + err.Error() + "\n"
		}
	}
}

// end takes in the final state and returns what is wrong with the run.
func (x *execution) end() string {
	all := slices.Concat(x.c.threads...)
	for i := range all {
		x.h.times[i] = [2]time.Duration{x.begun, x.begun}
		for k := range all {
			if x.spans[k][1] < x.spans[i][0] {
				x.h.before[i] |= 1 << k
			}
			if all[k].what != "clock" {
				continue
			}
			for n, step := range x.spans[i] {
				if x.spans[k][0] <= step {
					x.h.times[i][n] += all[k].moves
				}
			}
		}
	}
	x.h.evicted = x.engine.Stats().Evicted - x.h.evicted
	x.restart()
	for i, c := range x.c.after {
		x.call(len(all)+i, c)
		x.h.times[len(all)+i] = [2]time.Duration{x.elapsed(), x.elapsed()}
	}
	wrong, known := x.checked[x.h]
	if !known {
		wrong = x.explain(all)
		x.checked[x.h] = wrong
	}
	return wrong
}

// restart compares the engine with one that loads what it saved.
func (x *execution) restart() {
	if !slices.ContainsFunc(slices.Concat(x.c.threads...), func(c call) bool { return c.what == "save" }) {
		return
	}
	x.special(call{what: "save"})
	loaded := newEngine(x.c.max, x.clock)
	if err := loaded.Load(slices.Collect(maps.Values(x.saved))); err != nil {
		x.h.errors += "Load: " + err.Error() + "\n"
	}
	for _, c := range x.c.after {
		if c.what != "peek" && c.what != "bans" {
			continue
		}
		if got, want := c.do(loaded, nil), c.do(x.engine, nil); got != want {
			x.h.errors += c.text + " after a restart: " + got.String() + ", before: " + want.String() + "\n"
		}
	}
}
