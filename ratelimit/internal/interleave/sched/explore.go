package sched

// A Program is what is run again and again, under one schedule after the other.
type Program struct {
	// Start returns the threads of a new run, at most MaxThreads. What it does
	// itself is not scheduled. Runs with the same schedule must do the same.
	Start func() (threads []func())
	// End is called when all threads of a run have ended. It returns what is
	// wrong with it, or "".
	End func() string
}

// Options of [Explore].
type Options struct {
	// Preemptions is how often at most a schedule takes the turn from a thread
	// that could go on, within one of its calls.
	Preemptions int
	// Every has schedules run that differ from others only in the order of
	// steps that do not depend on each other. It is for tests of this package.
	Every bool
}

// Explore runs the program under all schedules, depth first, until one fails.
// It returns how many it ran, and the failure, if there is one.
//
// A preemption before a step of a thread is left out if the same preemption after
// the step was tried, and nothing that the other threads did there, before the
// thread went on, depends on the step: then the step might as well come first. Two
// steps depend on each other if they name one place and either writes. The first
// step of a call depends on everything, as it decides which calls came before.
func Explore(p Program, o Options) (runs int, failed *Failure) {
	x := explorer{Options: o}
	for {
		r := newRun(p.Start(), false)
		depth := 0
		r.finish(func(n *node) int {
			if depth == len(x.path) {
				x.path = append(x.path, x.branch(*n))
			}
			depth++
			return x.path[depth-1].chosen
		})
		runs++
		if r.failure == "" {
			r.failure = p.End()
		}
		if r.failure != "" {
			return runs, &Failure{Schedule: scheduleOf(r.path), Text: r.failure}
		}
		x.learn(r.path)
		if !x.next() {
			return runs, nil
		}
	}
}

type explorer struct {
	Options
	path []branch
}

// A branch is a node of the tree of schedules.
type branch struct {
	node
	preemptions int                   // before this node
	tried       mask                  // the threads that were run here, or need not be
	others      [MaxThreads]footprint // what followed their choice, before current went on
	own         node                  // the choice of current
	after       *branch               // the node that followed it
}

// branch returns a new node of the tree at the end of the path.
func (x *explorer) branch(n node) branch {
	b := branch{node: n}
	if last := len(x.path) - 1; last >= 0 {
		b.preemptions = x.path[last].preemptions + x.path[last].cost()
	}
	b.choose(b.first())
	return b
}

func (b *branch) choose(thread int) {
	b.chosen = thread
	b.tried = b.tried.with(thread)
}

// cost returns how many preemptions the choice is.
func (b *branch) cost() int {
	if b.free || b.chosen == b.current {
		return 0
	}
	return 1
}

// learn takes from a run what each choice of another thread than current led to
// before current went on.
func (x *explorer) learn(path []node) {
	for i := range path {
		b := &x.path[i]
		b.node = path[i]
		if b.chosen == b.current {
			b.own = path[i]
			continue
		}
		if b.current < 0 {
			continue
		}
		f := &b.others[b.chosen]
		for _, n := range path[i:] {
			f.wait(n)
			if n.chosen == b.current {
				break
			}
			f.step(n)
		}
	}
}

// next moves to the next schedule. It returns false if there is none.
func (x *explorer) next() bool {
	for len(x.path) > 0 {
		last := len(x.path) - 1
		b := &x.path[last]
		for thread := range MaxThreads {
			if !b.enabled.has(thread) || b.tried.has(thread) {
				continue
			}
			if !b.free && b.preemptions == x.Preemptions {
				break
			}
			if x.redundant(b, thread) {
				b.tried = b.tried.with(thread)
				b.others[thread] = b.after.others[thread]
				continue
			}
			b.choose(thread)
			return true
		}
		if last > 0 && x.path[last-1].chosen == x.path[last-1].current {
			popped := *b
			popped.after = nil
			x.path[last-1].after = &popped
		}
		x.path = x.path[:last]
	}
	return false
}

// redundant reports whether all that can follow the choice of a thread also
// follows if current does its step first.
func (x *explorer) redundant(b *branch, thread int) bool {
	if x.Every || b.after == nil || !b.after.tried.has(thread) {
		return false
	}
	return !b.own.begins && !b.after.others[thread].dependsOn(b.own)
}

// A footprint is the places that some steps read and wrote.
type footprint struct{ read, written bits }

// step takes in a step.
func (f *footprint) step(n node) {
	if n.kind == Read {
		f.read.set(n.place)
	} else {
		f.written.set(n.place)
	}
}

// wait takes in the places that threads waited for when a step was chosen: they
// would have gone on if the place had been free.
func (f *footprint) wait(n node) {
	for _, place := range n.waits {
		if place > 0 {
			f.written.set(place - 1)
		}
	}
}

// dependsOn reports whether the order of a step and of those in f matters.
func (f *footprint) dependsOn(n node) bool {
	return f.written.has(n.place) || n.kind == Write && f.read.has(n.place)
}

// bits is a set of small numbers.
type bits []uint64

func (b *bits) set(i int) {
	for i>>6 >= len(*b) {
		*b = append(*b, 0)
	}
	(*b)[i>>6] |= 1 << (i & 63)
}

func (b bits) has(i int) bool { return i>>6 < len(b) && b[i>>6]>>(i&63)&1 != 0 }
