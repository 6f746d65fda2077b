package memory

import (
	"fmt"
	"testing"
)

// The names take no more memory than a few times that of the subjects that are
// banned, however many were banned before and however often.
func TestNamesAreBounded(t *testing.T) {
	for what, hash := range map[string]func(i int) uint64{
		"bans that are over":           func(i int) uint64 { return uint64(i) },
		"one subject, banned each day": func(int) uint64 { return 0 },
	} {
		var n names
		for i := range 10_000 {
			last := hash(i)
			n.add(last, fmt.Sprint("subject ", last), func(h uint64) bool { return h == last })
		}
		if size := len(n.bytes); size > 2*smallestNames {
			t.Errorf("%s: the names take %d bytes, want %d at most", what, size, 2*smallestNames)
		}
	}
}
