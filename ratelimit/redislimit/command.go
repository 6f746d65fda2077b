package redislimit

import (
	"encoding/binary"
	"math"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
)

// maxKeys is how many subjects one call of the script takes at most. It bounds
// how long the script keeps the server from everything else, at about two
// microseconds a subject.
const maxKeys = 64

// A command is one call of the script: the same operation on some subjects. No
// subject stands in it twice, because the script reads all the keys first.
type command struct {
	*redis.StringCmd
	groups []*group
	eval   bool // send the script itself

	// Of a command that waits for a slot: since when, and how long until it is sent
	// once more.
	begun time.Time
	pause time.Duration
}

// takes reports whether the command has room for the group, and no other group of
// the same subject.
func (cmd *command) takes(g *group) bool {
	for _, other := range cmd.groups {
		if other.partition == g.partition && other.subject == g.subject {
			return false
		}
	}
	return len(cmd.groups) < maxKeys
}

// NoRetry keeps the client from sending a command a second time when it does not
// know what became of the first: what was charged by a call whose reply was lost
// must not be charged again.
func (*command) NoRetry() bool { return true }

// class is what groups of one command have in common.
type class struct {
	op        byte
	plan      *ratelimit.Plan
	cost      int64
	ends      [ratelimit.MaxQuotas]uint32
	partition int // -1: any
}

// commands makes the commands for groups.
func (l *Limiter) commands(groups []*group) []*command {
	if len(groups) == 1 {
		return []*command{{groups: groups}}
	}
	alone := l.alone.Load()
	var cmds []*command
	var open map[class]*command
	var last class // mostly that of the next group too
	var cmd *command
	for _, g := range groups {
		if g.index || g.op == opCharge {
			cmds = append(cmds, &command{groups: []*group{g}})
			continue
		}
		c := class{g.op, g.plan, g.cost, g.ends, -1}
		if alone {
			c.partition = g.partition
		}
		if cmd == nil || c != last {
			if open == nil {
				open = make(map[class]*command)
			}
			if cmd != nil {
				open[last] = cmd
			}
			last, cmd = c, open[c]
		}
		if cmd == nil || !cmd.takes(g) {
			cmd = &command{groups: make([]*group, 0, min(len(groups), maxKeys))}
			cmds = append(cmds, cmd)
		}
		cmd.groups = append(cmd.groups, g)
	}
	return cmds
}

// args are the arguments of the command.
func (l *Limiter) args(cmd *command) []any {
	args := make([]any, 0, 7+len(cmd.groups))
	if cmd.eval {
		args = append(args, "eval", script)
	} else {
		args = append(args, "evalsha", digest)
	}
	first := cmd.groups[0]
	what := first.appendTo(make([]byte, 0, 64))
	if first.noBan {
		return append(args, "1", l.keys.subject(first.partition, first.subject), what, cmd.counts(), "")
	}
	if first.index {
		return append(args, "2", l.keys.subject(first.partition, first.subject), l.keys.index(first.partition),
			what, cmd.counts(), first.subject)
	}
	if first.op == opCharge {
		return append(args, "2", l.keys.subject(first.partition, first.subject), l.keys.mark(first.partition, first.subject, first.charge.id),
			what, "", first.subject)
	}
	args = append(args, strconv.Itoa(len(cmd.groups)))
	for _, g := range cmd.groups {
		args = append(args, l.keys.subject(g.partition, g.subject))
	}
	args = append(args, what)
	if counts := cmd.counts(); counts != "" {
		args = append(args, counts)
	}
	return args
}

// counts says how many requests each subject makes, nothing if all make one.
func (cmd *command) counts() string {
	for _, g := range cmd.groups {
		if g.requests > 1 {
			counts := make([]byte, 0, 2*len(cmd.groups))
			for _, g := range cmd.groups {
				counts = binary.BigEndian.AppendUint16(counts, uint16(g.requests))
			}
			return string(counts)
		}
	}
	return ""
}

// appendTo appends the operation and what it needs, as the script reads it.
func (q *question) appendTo(b []byte) []byte {
	u32 := binary.BigEndian.AppendUint32
	b = append(b, q.op)
	switch q.op {
	case opBan:
		b = u32(b, uint32(q.arg/int64(time.Second)))
		return u32(b, uint32(q.arg%int64(time.Second)))
	case opTake, opPeek, opRefund, opCharge:
	default:
		return b
	}
	b = append(u32(b, uint32(q.cost)), byte(q.plan.Len()))
	for i := range q.plan.Len() {
		quota := q.plan.Quota(i)
		b = u32(u32(b, seconds(quota.Window)), uint32(quota.Limit))
	}
	switch q.op {
	case opRefund:
		for i := range q.plan.Len() {
			b = u32(b, q.ends[i])
		}
		return b
	case opCharge:
		b = u32(b, uint32(min(q.arg/int64(time.Second), math.MaxUint32)))
		for i := range q.plan.Len() {
			b = u32(b, uint32(q.charge.units[i]))
		}
		return b
	}
	p := q.plan.Penalty()
	b = binary.BigEndian.AppendUint16(b, uint16(p.Strikes))
	b = u32(u32(b, uint32(p.Grace.Milliseconds())), seconds(p.Decay))
	b = append(u32(b, seconds(p.Ban)), byte(p.Growth))
	return u32(u32(b, seconds(p.Max)), seconds(p.Forgive))
}

func seconds(d time.Duration) uint32 { return uint32(d / time.Second) }
