package memory

import (
	"encoding/binary"
	"iter"
)

// names holds the names of the banned, of whom there are few, in one array of
// bytes without pointers: eight bytes of hash, the length, and the name. Only
// lists of bans search it.
type names struct {
	bytes []byte
	limit int // size at which the array is cleaned up
}

const smallestNames = 512

// add enters a name. At the limit it first drops the names that keep turns away
// and those that were entered twice.
func (n *names) add(h uint64, name string, keep func(h uint64) bool) {
	if len(n.bytes) >= n.limit {
		n.clean(keep)
	}
	n.bytes = appendName(n.bytes, h, name)
}

func (n *names) clean(keep func(h uint64) bool) {
	var kept []byte
	seen := map[uint64]bool{}
	for h, name := range n.all() {
		if !seen[h] && keep(h) {
			seen[h] = true
			kept = appendName(kept, h, string(name))
		}
	}
	n.bytes, n.limit = kept, max(2*len(kept), smallestNames)
}

func appendName(b []byte, h uint64, name string) []byte {
	b = binary.LittleEndian.AppendUint64(b, h)
	b = binary.AppendUvarint(b, uint64(len(name)))
	return append(b, name...)
}

// all yields the hashes and names. A hash may come more than once.
func (n *names) all() iter.Seq2[uint64, []byte] {
	return func(yield func(uint64, []byte) bool) {
		for rest := n.bytes; len(rest) > 0; {
			h := binary.LittleEndian.Uint64(rest)
			length, size := binary.Uvarint(rest[8:])
			end := 8 + size + int(length)
			if !yield(h, rest[8+size:end]) {
				return
			}
			rest = rest[end:]
		}
	}
}

// index returns the names by their hashes.
func (n *names) index() map[uint64]string {
	index := map[uint64]string{}
	for h, name := range n.all() {
		index[h] = string(name)
	}
	return index
}
