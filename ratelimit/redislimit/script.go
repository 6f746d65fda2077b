package redislimit

import (
	"context"
	"crypto/sha1"
	_ "embed"
	"encoding/hex"

	"github.com/redis/go-redis/v9"
)

//go:embed limit.lua
var script string

// digest is the name by which EVALSHA knows the script.
var digest = func() string {
	sum := sha1.Sum([]byte(script))
	return hex.EncodeToString(sum[:])
}()

// send puts the groups' questions to the script, and ends them. A group that has to
// wait for a slot of a cluster ends later.
func (l *Limiter) send(groups []*group) { l.dispatch(l.commands(groups)) }

// dispatch sends commands, and what follows from the replies.
func (l *Limiter) dispatch(cmds []*command) {
	for attempt := 0; len(cmds) > 0; attempt++ {
		l.run(cmds)
		var again []*command
		for _, cmd := range cmds {
			again = append(again, l.receive(cmd, attempt)...)
		}
		cmds = again
	}
}

// run sends commands in one round trip.
func (l *Limiter) run(cmds []*command) {
	// The commands are many callers', none of whom may end those of the others.
	ctx := context.Background()
	for _, cmd := range cmds {
		cmd.StringCmd = redis.NewStringCmd(ctx, l.args(cmd)...)
	}
	if len(cmds) == 1 {
		_ = l.client.Process(ctx, cmds[0]) // the command has the error
		return
	}
	pipe := l.client.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx)
}

// receive ends the groups of a command that was sent. It returns what is to be sent
// now: commands of which the server said that nothing was done, and refunds.
func (l *Limiter) receive(cmd *command, attempt int) (again []*command) {
	const attempts = 6 // what leads to another one can come together, and again
	err := cmd.Err()
	if err == nil {
		l.contact()
		again, err = l.deal(cmd)
	}
	switch {
	case err == nil:
	case attempt+1 < attempts && redis.HasErrorPrefix(err, "NOSCRIPT"):
		return []*command{{groups: cmd.groups, eval: true}}
	case attempt+1 < attempts && len(cmd.groups) > 1 && redis.HasErrorPrefix(err, "CROSSSLOT"):
		l.alone.Store(true)
		return l.commands(cmd.groups)
	case attempt+1 < attempts && len(cmd.groups) > 1 && l.moving(err):
		return cmd.split()
	case len(cmd.groups) == 1 && l.moving(err):
		if g := cmd.groups[0]; g.op == opTake && g.index && !g.noBan {
			g.noBan = true
			return []*command{{groups: []*group{g}}}
		}
		cmd.groups = []*group{cmd.groups[0]} // the batch may use its slice again
		go l.postpone(cmd, err)
	case redis.HasErrorPrefix(err, "WRONGTYPE"): // of a subject's key the script says so itself
		cmd.fail(foreign(l.keys.index(cmd.groups[0].partition)))
	default:
		l.lanes.doubt()
		cmd.fail(err)
	}
	return again
}

// deal hands each group its part of the reply. It returns what is to be sent now:
// groups that need the index, once more, and what is given back for callers who had
// an error by then, and so did not admit the request.
func (l *Limiter) deal(cmd *command) (again []*command, err error) {
	time, rest, err := cutTime(cmd.Val())
	if err != nil {
		return nil, err
	}
	for _, g := range cmd.groups {
		if g.entry, rest, err = cutEntry(rest); err != nil {
			return nil, err
		}
		g.time = time
	}
	if rest != "" {
		return nil, errReply
	}
	for _, g := range cmd.groups {
		if g.entry[0] == needsIndex && !g.index {
			g.index = true
			again = append(again, &command{groups: []*group{g}})
			continue
		}
		if g.entry[0] == notOurs {
			g.err = unavailable(foreign(l.keys.subject(g.partition, g.subject)))
		}
		if late := g.finish(); late > 0 {
			if back := g.refund(late); back != nil {
				again = append(again, &command{groups: []*group{back}})
			}
		}
	}
	return again, nil
}

// fail ends the groups with an error.
func (cmd *command) fail(err error) {
	err = unavailable(err)
	for _, g := range cmd.groups {
		g.err = err
		g.finish()
	}
}
