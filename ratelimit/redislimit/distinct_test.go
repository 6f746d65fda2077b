package redislimit

import (
	"fmt"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/animalstore/gatehouse/internal/testcheck"
	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

var must = testcheck.NoError

// The script reads the keys of a command before it writes any of them, so a key
// that a command named twice would lose what its first mention wrote.
func TestNoKeyStandsTwiceInACommand(t *testing.T) {
	codes := []byte{opTake, opPeek, opAdd, opGiveBack, opBan, opUnban, opReset, opShow}
	r := rand.New(rand.NewPCG(1, 2))
	for _, oneSlot := range []bool{false, true} {
		s := &sender{keys: newKeys("test")}
		s.oneSlot.Store(oneSlot)
		for range 200 {
			var groups []*group
			for range 1 + r.IntN(200) {
				op := operation{code: codes[r.IntN(len(codes))], subject: fmt.Sprint(r.IntN(20))}
				op.plan, op.cost, op.reason = groupPlans[r.IntN(2)], 1+r.Int64N(2), engine.ReasonByHand
				if op.code == opAdd || op.code == opGiveBack {
					op = adjustment(op.subject, &ratelimit.Decision{Plan: op.plan}, 1-2*r.Int64N(2), fmt.Sprint(r.IntN(3)))
				}
				groups = append(groups, newGroup(op))
			}
			sent := 0
			last := map[operation]int{}
			position := map[*group]int{}
			for i, g := range groups {
				position[g] = i
			}
			for _, cmd := range s.pack(groups) {
				seen := map[any]bool{}
				args := cmd.args(s.keys, 0)
				n, err := strconv.Atoi(args[2].(string))
				must(t, err)
				keys := args[3 : 3+n]
				for i := range keys {
					if seen[keys[i]] {
						t.Fatalf("%q stands twice in one command", keys[i])
					}
					seen[keys[i]] = true
				}
				sent += len(cmd.groups)
				for _, g := range cmd.groups {
					if before, there := last[g.operation]; there && position[g] < before {
						t.Fatalf("equal operations are sent in another order than that of their calls")
					}
					last[g.operation] = position[g]
				}
			}
			if sent != len(groups) {
				t.Fatalf("%d groups were sent, want %d", sent, len(groups))
			}
		}
	}
}
