package redislimit

import (
	"encoding/binary"
	"slices"
	"strconv"

	"github.com/animalstore/gatehouse/ratelimit"
)

// takeAllArgs returns the arguments of a command of groups of takes.
func (cmd *command) takeAllArgs(k *keys, now int64) []any {
	type plan struct {
		*ratelimit.Plan
		cost int64
	}
	charges := 0
	for _, g := range cmd.groups {
		charges += len(g.takes.charges)
	}
	numbers := make(map[string]int, charges) // of subjects
	names := make([]string, 0, charges)
	takes := make([]byte, 0, 3*len(cmd.groups)+2*charges)
	args := append(cmd.call(make([]any, 0, charges+4)), "")
	var known []plan // mostly few
	var plans []byte
	for _, g := range cmd.groups {
		takes = binary.BigEndian.AppendUint16(append(takes, byte(len(g.takes.charges))), uint16(g.requests))
		for _, c := range g.takes.charges {
			s := numbers[c.Subject]
			if s == 0 {
				names = append(names, c.Subject)
				s = len(names)
				numbers[c.Subject] = s
				args = append(args, k.subject(partition(c.Subject), c.Subject))
			}
			p := slices.Index(known, plan{c.Plan, c.Cost})
			if p < 0 {
				p = len(known)
				known = append(known, plan{c.Plan, c.Cost})
				op := operation{code: opTake, plan: c.Plan, cost: c.Cost}
				begin := len(plans)
				plans = op.appendTo(append(plans, 0), now)
				plans[begin] = byte(len(plans) - begin - 1)
			}
			takes = append(takes, byte(s), byte(p+1))
		}
	}
	indexed := cmd.groups[0].index == indexGiven
	if indexed {
		for _, name := range names {
			args = append(args, k.index(partition(name)))
		}
	}
	args[2] = strconv.Itoa(len(args) - 3)
	packed := append([]byte{byte(len(known))}, plans...)
	args = append(args, append(packed, takes...))
	if indexed {
		for _, name := range names {
			args = append(args, name)
		}
	}
	return args
}
