package sched

import (
	"fmt"
	"iter"
	"runtime"
	"strings"
	"unsafe"
)

// A Kind says what a step does to the place in memory that it names.
type Kind uint8

const (
	Read  Kind = iota // two reads of a place may change their order
	Write             // also a read-modify-write, and every step of a mutex
)

// A thread is one of the functions that a run has, on a coroutine of its own.
type thread struct {
	resume func() (struct{}, bool)
	stop   func()
	yield  func(struct{}) bool
	done   bool

	next  step // what it does when it is resumed
	calls bool // next is the first step of a call
	began int  // the number of the first step of the call
}

// A step is one traced operation.
type step struct {
	place unsafe.Pointer
	kind  Kind
	what  string
	where string      // only if the run is recorded
	ready func() bool // nil: always
}

func (t *thread) enabled() bool { return !t.done && (t.next.ready == nil || t.next.ready()) }

// active is the run under way. An atomic operation has no argument that could
// carry it. Only one run is under way at a time in a process.
var active *run

// Step is called by a traced operation before it does its work. It returns when
// the scheduler lets the calling thread go on; until the thread's next step no
// other thread runs. A step that waits names what for: it is not scheduled until
// ready, which must not have effects, returns true. Outside of a run, Step
// returns immediately.
func Step(place unsafe.Pointer, kind Kind, what string, ready func() bool) {
	r := active
	if r == nil {
		if ready != nil && !ready() {
			panic(what + " waits for ever: there is no other thread")
		}
		return
	}
	t := r.threads[r.running]
	t.next = step{place: place, kind: kind, what: what, ready: ready}
	if r.trace != nil {
		t.next.where = traced()
	}
	if !t.yield(struct{}{}) {
		panic(abandoned{})
	}
	if t.calls {
		t.calls, t.began = false, len(r.path)
	}
}

// AwaitWrite is called by a thread that reads a place again and again until it changes.
// It returns when another thread has written to the place of the last step.
func AwaitWrite() {
	r := active
	if r == nil {
		panic("a place is read again for ever: there is no other thread")
	}
	place, since := r.threads[r.running].next.place, len(r.path)
	Step(place, Read, "await", func() bool { return r.written(place, since) })
}

// written reports whether a step from the given one on was a write to the place.
func (r *run) written(p unsafe.Pointer, since int) bool {
	number := r.place(p)
	for i := since; i < len(r.path); i++ {
		if n := &r.path[i]; n.kind == Write && n.place == number {
			return true
		}
	}
	return false
}

// abandoned unwinds a thread of a run that is over.
type abandoned struct{}

// Result records what the last step of the calling thread read or did, if steps are recorded.
func Result(text func() string) {
	if active != nil && len(active.trace) > 0 {
		active.trace[len(active.trace)-1].Result = text()
	}
}

// Call runs f, a call that has a place in the order of calls. It returns the numbers
// of its first and its last step in the run: a call that ended before another one
// began has the smaller numbers. The scheduler may switch threads between two calls
// at no cost.
func Call(f func()) (began, ended int) {
	r := active
	if r == nil {
		f()
		return 0, 0
	}
	t := r.threads[r.running]
	t.calls = true
	f()
	if t.calls { // no step at all
		t.calls, t.began = false, len(r.path)
	}
	return t.began, len(r.path)
}

// start makes the thread and runs it to its first step.
func (r *run) start(number int, f func()) {
	t := &thread{}
	r.threads = append(r.threads, t)
	t.resume, t.stop = iter.Pull(func(yield func(struct{}) bool) {
		t.yield = yield
		defer func() {
			t.done = true
			if p := recover(); p != nil && active == r {
				r.failure = fmt.Sprintf("thread %c: panic: %v, at %s", 'A'+number, p, panicked())
			}
		}()
		f()
	})
	r.running = number
	t.resume()
}

// panicked names the function and line that panicked, from within the deferred
// function that recovers.
func panicked() string {
	return callers(1, func(function string) bool { return strings.HasPrefix(function, "runtime.") })
}

// traced names the function that does a traced operation, and its caller.
func traced() string {
	return callers(2, func(function string) bool {
		return strings.Contains(function, "/internal/interleave/") || strings.HasPrefix(function, "runtime.")
	})
}

// callers returns at most count callers as "file.go:17 function". It passes over
// those that come first and are skipped.
func callers(count int, skipped func(function string) bool) string {
	pc := make([]uintptr, 32)
	frames := runtime.CallersFrames(pc[:runtime.Callers(4, pc)])
	var names []string
	for len(names) < count {
		f, more := frames.Next()
		if !more {
			break
		}
		if len(names) == 0 && skipped(f.Function) {
			continue
		}
		file := f.File[strings.LastIndexByte(f.File, '/')+1:]
		_, function, _ := strings.Cut(f.Function[strings.LastIndexByte(f.Function, '/')+1:], ".")
		names = append(names, fmt.Sprintf("%s:%d %s", file, f.Line, function))
	}
	return strings.Join(names, ", ")
}
