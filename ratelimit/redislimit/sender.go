package redislimit

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/animalstore/gatehouse/ratelimit"
	"github.com/animalstore/gatehouse/ratelimit/internal/partial"
)

// A sender has the script answer groups, in commands of the client.
type sender struct {
	client   redis.UniversalClient
	cluster  *redis.ClusterClient // the client, if it is one of a cluster
	keys     *keys
	logger   *slog.Logger
	policies sync.Map                                          // of eviction, by server
	observe  func(requests int, took time.Duration, err error) // nil: none

	ahead    atomic.Int64 // how far the server's clock is ahead of this one, nanoseconds; 0 unless calendar windows showed it
	oneSlot  atomic.Bool  // all subjects of a command must be in one slot
	reloaded atomic.Int64 // when the masters were last reloaded, Unix nanoseconds
	asked    atomic.Int64 // when the servers were last asked for their policies, Unix nanoseconds
	reported atomic.Int64 // when it was last logged that some subjects fail, Unix nanoseconds
}

func newSender(client redis.UniversalClient, k *keys, opts Options) *sender {
	s := &sender{client: client, keys: k, logger: opts.Logger, observe: opts.Observe}
	s.cluster, _ = client.(*redis.ClusterClient)
	_, oneServer := client.(*redis.Client)
	s.oneSlot.Store(!oneServer)
	return s
}

func (s *sender) newBatcher() *batcher { return &batcher{maxInFlight: maxInFlight, send: s.send} }

// send has the script answer the groups. Groups that wait for a slot of a cluster are
// answered later. An error says that the server cannot decide.
func (s *sender) send(groups []*group) error {
	moving, away := s.exchange(s.pack(groups))
	for _, cmd := range moving {
		go s.awaitSlot(cmd.groups[0], cmd.Err())
	}
	return away
}

// exchange sends commands, and what follows from the replies, until all of their
// groups are answered, except those of the commands that it returns: each of these
// has one group, and waits for a slot that moves. An error is that of the last commands,
// if their server cannot decide.
//
// A goroutine of its own sends most batches. send, exchange and roundTrip are small,
// so that its stack grows once and not twice on the way through the client.
func (s *sender) exchange(cmds []*command) (moving []*command, away error) {
	for attempt := 1; len(cmds) > 0; attempt++ {
		sent := time.Now()
		s.roundTrip(cmds)
		away = allAway(cmds)
		s.observeAll(cmds, sent)
		cmds, moving = s.receiveAll(cmds, attempt, moving)
	}
	return moving, away
}

// allAway returns the error of commands whose server cannot decide, and nil if one was
// answered, or failed otherwise.
func allAway(cmds []*command) (err error) {
	for _, cmd := range cmds {
		if err = cmd.Err(); !away(err) {
			return nil
		}
	}
	return err
}

// away reports whether an error says that the server cannot decide, while other masters
// may: it does not answer, cannot be reached, or has just been started again.
func away(err error) bool {
	if reply, ok := errors.AsType[redis.Error](err); ok {
		return redis.HasErrorPrefix(reply, "CLUSTERDOWN") || redis.HasErrorPrefix(reply, "LOADING")
	}
	return err != nil
}

// roundTrip sends commands together.
func (s *sender) roundTrip(cmds []*command) {
	ctx := context.Background() // no caller may end the commands of the others
	for _, cmd := range cmds {
		cmd.StringCmd = redis.NewStringCmd(ctx, cmd.args(s.keys, s.serverTime(cmd))...)
	}
	if len(cmds) == 1 {
		_ = s.client.Process(ctx, cmds[0]) // the command has the error
		return
	}
	pipe := s.client.Pipeline()
	for _, cmd := range cmds {
		_ = pipe.Process(ctx, cmd)
	}
	_, _ = pipe.Exec(ctx)
}

// serverTime returns the time of the server, in Unix nanoseconds, for a command with
// calendar windows, and 0 for others. It need not be exact: the script says if it finds
// itself outside of the windows around this time.
func (s *sender) serverTime(cmd *command) int64 {
	first := cmd.groups[0]
	if !first.calendar() && (first.code != opTakeAll || !slices.ContainsFunc(cmd.groups, (*group).calendar)) {
		return 0
	}
	return time.Now().UnixNano() + s.ahead.Load()
}

// calendar reports whether the group's operation is about calendar windows.
func (g *group) calendar() bool {
	if g.code == opTakeAll {
		return slices.ContainsFunc(g.takes.charges, func(c ratelimit.Charge) bool { return c.Plan.Numbers().Calendar })
	}
	return g.plan != nil && g.plan.Numbers().Calendar
}

// receiveAll answers the groups of commands that were sent. It returns what is to be
// sent now, and adds the commands that wait for a slot to moving.
func (s *sender) receiveAll(cmds []*command, attempt int, moving []*command) (again, _ []*command) {
	for _, cmd := range cmds {
		next, wait := s.receive(cmd, attempt)
		again = append(again, next...)
		if wait {
			moving = append(moving, cmd)
		}
	}
	return again, moving
}

// errClocks says that the script was not sent the calendar windows that the server's
// time lies in.
var errClocks = errors.New("the clock of the server has changed by days between two calls")

// attempts is how often groups are sent at most, apart from pauses: the reasons to
// send them again can come together.
const attempts = 6

// receive answers the groups of a command that was sent. It returns what is to be
// sent now: commands of which the server said that nothing was done, and refunds. It
// reports whether the command waits for a slot.
func (s *sender) receive(cmd *command, attempt int) (again []*command, wait bool) {
	err := cmd.Err()
	if err == nil {
		if due(&s.asked, logInterval) {
			go s.warnOfEviction()
		}
		if err = cmd.read(cmd.Val()); err == nil {
			if cmd.groups[0].letter != clocksApart {
				return s.deliver(cmd), false
			}
			s.ahead.Store(cmd.groups[0].time - time.Now().UnixNano())
			err = errClocks
		}
	}
	more, single := attempt < attempts, len(cmd.groups) == 1
	switch {
	case more && err == errClocks:
		return []*command{{groups: cmd.groups}}, false
	case more && redis.HasErrorPrefix(err, "NOSCRIPT"):
		return []*command{{groups: cmd.groups, eval: true}}, false
	case cmd.groups[0].code == opTakeAll && redis.HasErrorPrefix(err, "CROSSSLOT"):
		s.oneSlot.Store(true)
		cmd.fail(errSeveralSlots)
	case more && !single && redis.HasErrorPrefix(err, "CROSSSLOT"):
		s.oneSlot.Store(true)
		return s.pack(cmd.groups), false
	case more && !single && s.slotMoves(err):
		return cmd.split(), false
	case single && s.slotMoves(err):
		if g := cmd.groups[0]; g.code == opTake && g.index == indexGiven {
			g.index = indexUnavailable
			return []*command{{groups: cmd.groups}}, false
		}
		return nil, true
	case redis.HasErrorPrefix(err, "WRONGTYPE"): // of a subject's key the script says so itself
		cmd.fail(s.unknownValue(s.keys.index(cmd.groups[0].partition)))
	case redis.HasErrorPrefix(err, "ERR") && explain(err.Error()) != err.Error():
		cmd.fail(errors.New(explain(err.Error())))
	default:
		if s.cluster != nil && due(&s.reloaded, mastersInterval) {
			// The client would ask for the masters by itself once a minute, and when a
			// server redirects it, which a dead server does not.
			s.cluster.ReloadState(context.Background())
		}
		cmd.fail(err)
	}
	return nil, false
}

// deliver ends the groups that are answered. It returns what is to be sent now: takes
// that need the index, once more, and refunds of requests that were granted after the
// deadlines of their callers, which had an error by then and did not admit them.
func (s *sender) deliver(cmd *command) (again []*command) {
	for _, g := range cmd.groups {
		if g.letter == needsIndex && g.index == indexNotNeeded {
			g.index = indexGiven
			again = append(again, &command{groups: []*group{g}})
			continue
		}
		switch g.letter {
		case unknown:
			g.err = unavailable(s.unknownValue(s.keys.subject(g.partition, g.subject)))
		case wrongIndex:
			g.err = unavailable(s.unknownValue(s.keys.index(g.partition)))
		}
		if late := g.finish(); late > 0 {
			again = append(again, g.refunds(late)...)
		}
	}
	return again
}

// refunds returns commands that give back what so many requests were charged.
func (g *group) refunds(requests int32) (cmds []*command) {
	charges, answers := []ratelimit.Charge{{Subject: g.subject, Plan: g.plan, Cost: g.cost}}, []answer{g.answer}
	if g.code == opTakeAll {
		charges, answers = g.takes.charges, g.takes.answers
	}
	if g.lease != nil {
		charges[0].Cost = g.lease.own + g.lease.share
	}
	for i := range charges {
		if op, err := answers[i].refund(&charges[i], requests); err == nil && charges[i].Cost > 0 {
			cmds = append(cmds, &command{groups: []*group{newGroup(op)}})
		}
	}
	return cmds
}

// fail ends the groups with an error.
func (cmd *command) fail(err error) {
	for _, g := range cmd.groups {
		g.fail(unavailable(err))
	}
}

// unavailable returns err as the engine's.
func unavailable(err error) error {
	return fmt.Errorf("redislimit: %w: %w", ratelimit.ErrUnavailable, err)
}

// unknownValue says that redislimit did not write what a key holds.
func (s *sender) unknownValue(key string) error {
	return s.partial(fmt.Errorf("key %.200q holds a value that redislimit did not write: delete the key, or set another Options.Prefix", key))
}

// logInterval is the time from one look at the servers' policies to the next, and from one line
// about an error of some subjects to the next.
const logInterval = time.Minute

// partial returns an error that is of some subjects only, and logs it: nothing else does, as the
// circuit of package failover stays closed.
func (s *sender) partial(err error) error {
	if due(&s.reported, logInterval) {
		s.logger.Warn("redislimit: requests for some subjects fail", "error", err)
	}
	return fmt.Errorf("%w (%w)", err, partial.ErrOutage)
}
