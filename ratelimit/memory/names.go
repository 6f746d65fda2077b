package memory

import "strings"

// names holds the names of banned subjects, by the hashes of their accounts, for lists of
// bans and Save. A name that is longer than longestName, or for which there is no room, is
// not kept.
type names struct {
	all   map[uint64]string
	bytes int // of all names
}

const (
	longestName = 1 << 10                // bytes
	mostNames   = 64 * subjectsInSegment // bytes
)

// keep keeps a name until drop is called. The empty name is that of a subject whose name
// was not kept when it was saved.
func (n *names) keep(h uint64, name string) {
	_, found := n.all[h]
	if found || name == "" || len(name) > longestName || n.bytes+len(name) > mostNames {
		return
	}
	if n.all == nil {
		n.all = map[uint64]string{}
	}
	n.all[h] = strings.Clone(name) // it may be a part of a longer string
	n.bytes += len(name)
}

func (n *names) drop(h uint64) {
	name, found := n.all[h]
	if !found {
		return
	}
	n.bytes -= len(name)
	if delete(n.all, h); len(n.all) == 0 {
		n.all = nil // a map does not shrink
	}
}
