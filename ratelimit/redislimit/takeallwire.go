package redislimit

import (
	"encoding/binary"
	"strconv"

	"github.com/animalstore/gatehouse/ratelimit"
)

// takeAllArgs returns the arguments of a command of groups of takes.
func (cmd *command) takeAllArgs(k *keys, now int64) []any {
	type plan struct {
		*ratelimit.Plan
		cost int64
	}
	var plans, takes []byte
	subjects, numbers := make(map[string]int), make(map[plan]int)
	var names []any
	args := append(cmd.call(nil), "")
	for _, g := range cmd.groups {
		takes = binary.BigEndian.AppendUint16(append(takes, byte(len(g.takes.charges))), uint16(g.requests))
		for _, c := range g.takes.charges {
			s := subjects[c.Subject]
			if s == 0 {
				s = len(subjects) + 1
				subjects[c.Subject] = s
				args = append(args, k.subject(partition(c.Subject), c.Subject))
				names = append(names, c.Subject)
			}
			p := numbers[plan{c.Plan, c.Cost}]
			if p == 0 {
				p = len(numbers) + 1
				numbers[plan{c.Plan, c.Cost}] = p
				op := operation{code: opTake, plan: c.Plan, cost: c.Cost}
				begin := len(plans)
				plans = op.appendTo(append(plans, 0), now)
				plans[begin] = byte(len(plans) - begin - 1)
			}
			takes = append(takes, byte(s), byte(p))
		}
	}
	indexed := cmd.groups[0].index == indexGiven
	if indexed {
		for _, name := range names {
			args = append(args, k.index(partition(name.(string))))
		}
	}
	args[2] = strconv.Itoa(len(args) - 3)
	packed := append([]byte{byte(len(numbers))}, plans...)
	args = append(args, append(packed, takes...))
	if indexed {
		args = append(args, names...)
	}
	return args
}
