package sched

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
