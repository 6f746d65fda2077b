package cases

import (
	"fmt"
	"slices"
	"time"

	"github.com/animalstore/gatehouse/ratelimit/memory"
)

// neighbours returns the names of three subjects with searches that begin at one slot
// of the smallest table, so that the second stands behind the first, and the third
// behind the second.
func neighbours() (first, second, third string) {
	found := namesAt(3, home(keys(take("n0", two))[0]))
	return found[0], found[1], found[2]
}

// inFront returns the name of a subject with a search that begins where that for the
// record of the given one begins.
func inFront(subject string) string {
	account := keys(take(subject, two))[0]
	both := keys(take(subject, two), ban(subject))
	record := both[1-slices.Index(both, account)]
	return namesAt(1, home(record))[0]
}

// namesAt returns so many names with a search that begins at a slot.
func namesAt(n int, slot uint64) (names []string) {
	for i := 0; len(names) < n; i++ {
		if name := fmt.Sprint("n", i); home(keys(take(name, two))[0]) == slot {
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

// keys returns the keys of what the engine saves after some calls.
func keys(calls ...call) (keys []uint64) {
	l, err := memory.New(memory.Options{MaxSubjects: few, Secret: secret, Now: func() time.Time { return start }})
	if err != nil {
		panic(err)
	}
	for _, c := range calls {
		c.do(l, nil)
	}
	_ = l.Save(func(records []memory.Record) error {
		for _, r := range records {
			keys = append(keys, r.Key)
		}
		return nil
	})
	return keys
}
