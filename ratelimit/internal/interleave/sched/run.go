package sched

import (
	"fmt"
	"strings"
	"unsafe"
)

// MaxThreads is how many threads a program may have.
const MaxThreads = 4

// maxSteps is when a run counts as a livelock.
const maxSteps = 10_000

// A run is one schedule of a program's threads.
type run struct {
	threads []*thread
	running int // -1: none yet
	path    []node
	places  map[unsafe.Pointer]int
	failure string
	trace   []Event // nil: not recorded
}

// An Event is one step of a recorded run.
type Event struct {
	Thread int
	What   string // "load"
	Place  int    // the places are numbered as they are met
	Where  string // "slot.go:37 slot.meter, take.go:17 (*Limiter).Take"
	Result string // what was read, or became of it
}

// A node is one decision of the scheduler, and what came of it.
type node struct {
	current int  // the thread that ran before, -1: none
	chosen  int  // the thread that goes on
	enabled mask // the threads that could go on
	free    bool // to leave current costs no preemption
	begins  bool // the step begins a call
	place   int
	kind    Kind
	waits   [MaxThreads]int // the places that threads wait for, plus one
}

// first is the default choice: the thread that ran before, or else the first of
// those that can go on.
func (n *node) first() int {
	if n.current >= 0 && n.enabled.has(n.current) {
		return n.current
	}
	return n.enabled.lowest()
}

type mask uint8

func (m mask) has(i int) bool  { return m>>i&1 != 0 }
func (m mask) with(i int) mask { return m | 1<<i }
func (m mask) lowest() (first int) {
	for !m.has(first) {
		first++
	}
	return first
}

// newRun starts the threads of a program; each stands before its first step.
func newRun(threads []func(), traced bool) *run {
	r := &run{places: map[unsafe.Pointer]int{}}
	if traced {
		r.trace = []Event{}
	}
	active = r
	for i, f := range threads {
		r.start(i, f)
	}
	r.running = -1
	return r
}

// finish runs the threads to their end, or to a failure. Choose picks one of the
// enabled threads; the step of the node that it gets is not yet known.
func (r *run) finish(choose func(n *node) int) {
	defer r.end()
	for r.failure == "" {
		n, over := r.look()
		if over {
			return
		}
		n.chosen = choose(&n)
		if !n.enabled.has(n.chosen) {
			r.failure = fmt.Sprintf("the schedule does not fit: thread %c cannot go on after %d steps", 'A'+n.chosen, len(r.path))
			return
		}
		t := r.threads[n.chosen]
		n.place, n.kind, n.begins = r.place(t.next.place), t.next.kind, t.calls
		r.path = append(r.path, n)
		if r.trace != nil {
			r.trace = append(r.trace, Event{Thread: n.chosen, What: t.next.what, Place: n.place, Where: t.next.where})
		}
		r.running = n.chosen
		t.resume()
		if len(r.path) == maxSteps {
			r.failure = fmt.Sprintf("livelock: no end after %d steps", maxSteps)
		}
	}
}

// look finds the threads that can go on.
func (r *run) look() (n node, over bool) {
	n.current = r.running
	over = true
	for i, t := range r.threads {
		switch {
		case t.done:
			continue
		case t.enabled():
			n.enabled = n.enabled.with(i)
		default:
			n.waits[i] = r.place(t.next.place) + 1
		}
		over = false
	}
	if n.enabled == 0 && !over {
		r.failure = "deadlock: " + r.waiting()
		return n, true
	}
	n.free = n.current < 0 || !n.enabled.has(n.current) || r.threads[n.current].calls
	return n, over
}

func (r *run) waiting() string {
	var all []string
	for i, t := range r.threads {
		if !t.done {
			all = append(all, fmt.Sprintf("thread %c waits in %s of place %d", 'A'+i, t.next.what, r.place(t.next.place)))
		}
	}
	return strings.Join(all, ", ")
}

// place returns the number of a place. Runs with the same beginning number the
// places that they have met in it alike.
func (r *run) place(p unsafe.Pointer) int {
	n, known := r.places[p]
	if !known {
		n = len(r.places)
		r.places[p] = n
	}
	return n
}

// end unwinds the threads that have not come to their end.
func (r *run) end() {
	active = nil
	for _, t := range r.threads {
		t.stop()
	}
}
