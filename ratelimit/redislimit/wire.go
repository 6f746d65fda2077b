package redislimit

import (
	"encoding/binary"
	"errors"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/engine"
)

// What the script is sent, and how its reply is read. format.lua describes both.

// The operations of the script.
const (
	opTake     = 't'
	opPeek     = 'p'
	opAdd      = 'a' // units to a charge
	opGiveBack = 'r'
	opBan      = 'b'
	opUnban    = 'u'
	opReset    = 'x'
	opShow     = 's'
	opTakeAll  = 'm'
	opLease    = 'y' // what an opPeek with its terms is
	opRenew    = 'h' // a hold

	heldFollows = 255 // in place of how many requests a subject makes
)

// args returns the arguments of the command. The time now, in Unix nanoseconds, is that
// of the server, as far as it is known; it is for calendar windows.
func (cmd *command) args(k *keys, now int64) []any {
	if cmd.groups[0].code == opTakeAll {
		return cmd.takeAllArgs(k, now)
	}
	first := cmd.groups[0]
	args := append(cmd.call(make([]any, 0, 7+len(cmd.groups))), "")
	for _, g := range cmd.groups {
		args = append(args, k.subject(g.partition, g.subject))
	}
	keys, names := first.others(k)
	args = append(args, keys...)
	if first.endsHolds() {
		for _, g := range cmd.groups {
			args = append(args, k.holds(g.partition, g.subject))
		}
	}
	args[2] = strconv.Itoa(len(args) - 3)
	args = append(args, first.appendTo(make([]byte, 0, 64), now))
	counts := cmd.counts()
	switch {
	case first.lease != nil:
		counts = string(first.lease.terms())
	case first.holder != nil:
		counts = first.holder.terms(ratelimit.Charge{Cost: first.cost})
	case first.endsHolds():
		counts = string([]byte{heldFollows})
	}
	if counts == "" && names == nil {
		return args
	}
	return append(append(args, counts), names...)
}

// others returns the keys that an operation on one subject needs beside the subject's own, and
// what the script is given with them.
func (g *group) others(k *keys) (keys, names []any) {
	switch {
	case g.index == indexGiven:
		keys, names = append(keys, k.index(g.partition)), append(names, g.subject)
	case g.index == indexUnavailable:
		names = append(names, "")
	case g.code == opRenew:
		keys, names = append(keys, k.holds(g.partition, g.subject)), append(names, g.change.hold.member)
	case g.change != nil && g.change.hold != nil:
		keys, names = append(keys, k.holds(g.partition, g.subject)), append(names, "", g.change.hold.member, g.change.total)
	case g.change != nil && g.change.id != "":
		keys, names = append(keys, k.mark(g.partition, g.subject, g.change.id)), append(names, g.subject)
	}
	if g.code == opLease || g.code == opReset || g.code == opGiveBack && engine.Of(g.change.charge.Plan).Smooth() {
		keys = append(keys, k.mark(g.partition, g.subject, "")) // of its note
		if names == nil {
			names = append(names, "")
		}
	}
	return keys, names
}

// endsHolds reports whether what has expired of a subject's holds is given back first.
func (g *group) endsHolds() bool {
	return g.holder != nil || g.code == opPeek && !g.leavesHolds
}

// counts says how many requests each subject makes; it is empty if all make one, and for
// peeks, which a script with it takes for a lease.
func (cmd *command) counts() string {
	if cmd.groups[0].code == opPeek || !slices.ContainsFunc(cmd.groups, func(g *group) bool { return g.requests > 1 }) {
		return ""
	}
	counts := make([]byte, 0, 2*len(cmd.groups))
	for _, g := range cmd.groups {
		counts = binary.BigEndian.AppendUint16(counts, uint16(g.requests))
	}
	return string(counts)
}

// appendTo appends the operation and what it needs, as the script reads it.
func (op *operation) appendTo(b []byte, now int64) []byte {
	u32 := binary.BigEndian.AppendUint32
	switch b = append(b, op.code); op.code {
	case opBan:
		b = u32(u32(b, seconds(op.length)), uint32(op.length%time.Second))
		switch op.reason {
		case engine.ReasonStrikes:
			return b
		case engine.ReasonByHand:
			return append(b, 'h')
		}
		return append(append(b, 'h'), op.reason...)
	case opAdd, opGiveBack:
		return op.change.appendTo(b)
	case opRenew:
		return binary.BigEndian.AppendUint16(b, op.change.hold.seconds())
	case opLease:
		b[len(b)-1] = opPeek
		return op.appendPlan(b, now)
	case opTake, opPeek:
		return op.appendPlan(b, now)
	}
	return b
}

// wideLimit stands in for a larger limit. See format.lua.
const wideLimit = math.MaxUint32 - 1

// appendPlan appends the cost and the plan, with the calendar windows around now.
func (op *operation) appendPlan(b []byte, now int64) []byte {
	u32, plan, penalty := binary.BigEndian.AppendUint32, engine.Of(op.plan), op.plan.Penalty()
	b = append(u32(b, clamp(op.cost)), byte(plan.Len()))
	for i := range plan.Len() {
		b = u32(u32(b, lengthOf(plan.Kind(i))), uint32(min(plan.Limit(i), wideLimit)))
	}
	b = binary.BigEndian.AppendUint16(b, uint16(penalty.Strikes))
	b = u32(u32(b, uint32(penalty.Grace.Milliseconds())), seconds(penalty.Decay))
	b = append(u32(b, seconds(penalty.Ban)), byte(penalty.Growth))
	b = u32(u32(b, seconds(penalty.Max)), seconds(penalty.Forgive))
	for i := range plan.Len() {
		if plan.Numbers().Quota(i).IsCalendar() {
			for _, boundary := range plan.Numbers().Boundaries(i, now) {
				b = u32(b, clamp(boundary))
			}
		}
	}
	for i := range plan.Len() {
		if plan.Limit(i) >= wideLimit {
			b = appendU64(b, uint64(op.cost), uint64(plan.Limit(i)))
		}
	}
	return op.appendSpans(b)
}

// appendTo appends the change and the charge.
func (c *change) appendTo(b []byte) []byte {
	u32, d := binary.BigEndian.AppendUint32, &c.charge
	plan := engine.Of(d.Plan)
	b = u32(appendU64(b, uint64(max(c.units, -c.units))), clamp(d.Time/int64(time.Second)))
	b = append(b, byte(plan.Len()), byte(plan.Len()))
	windows := len(b) - 1
	for i := range plan.Len() {
		b = u32(u32(b, lengthOf(plan.Kind(i))), clamp(d.States[i].Reset))
	}
	for _, o := range d.Receipt.Others {
		if o.Length > 0 && o.Length < smoothLength {
			b = u32(u32(b, o.Length), o.End)
			b[windows]++
		}
	}
	return c.appendSpans(b)
}

// clamp returns the nearest number that four bytes hold.
func clamp(n int64) uint32 { return uint32(min(max(n, 0), math.MaxUint32)) }

func seconds(d time.Duration) uint32 { return uint32(d / time.Second) }

// The letters of an answer.
const (
	done        = 'a'
	denied      = 'd'
	limitedFree = 'g' // limited, and no strike
	banStarted  = 'b'
	banDeferred = 'h'
	needsIndex  = 'i'
	skipped     = 's' // in a group of takes
	unknown     = 'e'
	wrongIndex  = 'x' // of takes

	reasonFollows = 255 // in place of the length of a value

	clocksApart = "c" // in place of all answers
)

var errReply = errors.New("cannot read the reply of the script")

// An answer is what the script says of one subject.
type answer struct {
	nanos            int64  // Unix time of the server
	bytes            string // the subject's value, without the reason of a ban
	reason           string // of a ban by hand, if it is a text
	requests         int32  // that it is about; set before it is read
	granted, limited int32  // of the requests; what the others were, letter says
	letter           byte
}

// read reads the reply of the script into the groups of the command.
func (cmd *command) read(reply string) error {
	nanos, rest, err := cutTime(reply)
	if err != nil {
		return err
	}
	if rest == clocksApart {
		cmd.groups[0].nanos = nanos
		return errClocks
	}
	for _, g := range cmd.groups {
		g.nanos = nanos
		if g.code == opTakeAll {
			rest, err = g.readTakes(rest)
		} else if rest, err = g.answer.read(rest); err == nil && g.letter == skipped {
			err = errReply
		}
		if err == nil && g.lease != nil {
			err = g.readLease()
		}
		if err != nil {
			return err
		}
	}
	if rest != "" {
		return errReply
	}
	return nil
}

// cutTime reads the server's time, in Unix nanoseconds, from the front of a reply.
func cutTime(b string) (nanos int64, rest string, err error) {
	secs, rest, _ := strings.Cut(b, " ")
	micros, rest, _ := strings.Cut(rest, " ")
	s, err := strconv.ParseUint(secs, 10, 32)
	us, err2 := strconv.ParseUint(micros, 10, 32)
	if err != nil || err2 != nil || us >= 1_000_000 {
		return 0, "", errReply
	}
	return int64(s)*int64(time.Second) + int64(us)*int64(time.Microsecond), rest, nil
}

// read reads what is said of one subject from the front of b, and returns the rest.
func (a *answer) read(b string) (rest string, err error) {
	if b == "" {
		return "", errReply
	}
	a.letter, b = b[0], b[1:]
	switch a.letter {
	case needsIndex, unknown, wrongIndex:
		return b, nil
	case done:
		a.granted = a.requests
	case denied, limitedFree, banStarted, banDeferred, skipped:
		if len(b) < 4 {
			return "", errReply
		}
		a.granted, a.limited, b = int32(u16(b)), int32(u16(b[2:])), b[4:]
	default:
		return "", errReply
	}
	if len(b) > 0 && b[0] == reasonFollows {
		if a.reason, b, err = cut(b[1:]); err != nil {
			return "", err
		}
	}
	a.bytes, rest, err = cut(b)
	return rest, err
}

// cut reads a length of one byte, and so many bytes, from the front of b.
func cut(b string) (text, rest string, err error) {
	if b == "" || len(b)-1 < int(b[0]) {
		return "", "", errReply
	}
	size := 1 + int(b[0])
	return b[1:size], b[size:], nil
}

// u16 and u32 read the number at the front of b.
func u16(b string) int64 { return int64(b[0])<<8 | int64(b[1]) }
func u32(b string) int64 { return u16(b)<<16 | u16(b[2:]) }
